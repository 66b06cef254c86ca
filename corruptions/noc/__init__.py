"""ImageNet-NOC candidate corruptions (Laugros et al.)."""
