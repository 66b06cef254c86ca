"""Networks that adapt while they predict a stream of corrupted images.

orders      which image comes when, under which corruption
shown       its pixels, on the device
networks    a forward pass with other statistics, scales and shifts
methods     one step of each method on one batch
run         a method on a stream: one compiled scan; finished streams are kept
"""
