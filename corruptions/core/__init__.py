"""The engine: from `corrupt(key, images, name, severity)` to `sample` and `apply` of one image.

batch            `corrupt`: a batch of one size          many_sizes       `corrupt_image`, `corrupt_each`
corruption       the record of a corruption              registry         names and benchmarks; built_in: ours
checks, errors   of arguments                            severity         `Levels`, `Fraction`; severity_tables by image size
one_image        `sample` and `apply` of one image       clips            other ranges of values, clips, several cameras
dispatch         devices, chunks, threads                program_cache    compiled programs; forks: children that cannot compute
mixtures         `random_choice`, `compose`              labels           boxes, masks and points that follow
keys             seeds and indices of images             origin, code     what made a stored number
running          Ctrl-C while a command imports its modules
"""

import time

BEGUN = time.time()
"""When this process began to import the library, whose files are read by and by."""
