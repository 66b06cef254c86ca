"""The base of every command: devices, processes, folders of results, files. It knows neither models nor corruptions.

artifacts.py    state: arrays and a record of their origin, refused when damaged or edited; the
                provenance of results: revision, versions, device, command, inputs
command.py      flags, foreseen errors and Ctrl-C in one line, the user's modules, the command as a shell takes it
distributed.py  one program in many processes, and the signals that end it
files.py        writing (by `corruptions.files`) and holding workdirs, in buckets too; guarded readers of arrays and JSON
jobs.py         texts and jobs for SLURM, SkyPilot and submitit
log.py          the project's own log and progress bar
meshes.py       the device mesh, how arrays lie on it, and the programs compiled for it
settings.py     a setting: type, range, meaning; checks, lists, and the comparison with stored settings
workdirs.py     the folder of a run or study: lock, config, provenance, results; which process writes
"""
