"""ImageNet-C: 15 benchmark corruptions and 4 extra ones, five severities each (Hendrycks & Dietterich, 2019)."""

from corruptions.imagenet_c.blur import defocus_blur, gaussian_blur, zoom_blur
from corruptions.imagenet_c.color import brightness, contrast, saturate
from corruptions.imagenet_c.elastic import elastic_transform
from corruptions.imagenet_c.fog import fog
from corruptions.imagenet_c.glass import glass_blur
from corruptions.imagenet_c.jpeg import jpeg_compression
from corruptions.imagenet_c.motion import motion_blur
from corruptions.imagenet_c.noise import gaussian_noise, impulse_noise, shot_noise, speckle_noise
from corruptions.imagenet_c.pixelate import pixelate
from corruptions.imagenet_c.spatter import spatter
