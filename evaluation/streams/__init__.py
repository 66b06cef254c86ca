"""Networks that adapt while they predict a stream of corrupted images.

orders      which image comes when, under which corruption
walks       streams whose severities vary continuously, by the accuracies of a network
shown       its pixels, on the device
networks    a forward pass with other statistics, scales and shifts
tent        statistics of the batch and TENT; lame, eata, rotta, roid: other methods, one step of each on one batch
views       augmentation of a batch for consistency losses
methods     all of them by name, with published hyper-parameters
run         a method on a stream: one compiled scan; finished streams are kept
"""
