"""What networks see of transforms: features, and how far schemes are from corruptions in them.

transforms   augmentation schemes and corruptions as distributions of transforms
features     what a network sees of images under such transforms
centres      mean features of corruptions, and the distances of schemes to them
joint        such means over images that each have a draw of their own
pool         distances of many transforms of one scheme, by number
resampled    distances of single transforms with other images and draws
running      such distances while they are measured, saved every minute
forecast     how fast images go through, and how long the others will take

What is made of the distances is in `analysis.distances`.
"""
