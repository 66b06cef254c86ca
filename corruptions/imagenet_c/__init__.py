"""ImageNet-C corruptions (Hendrycks & Dietterich)."""
