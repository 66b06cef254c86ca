"""Registers the datasets of this project; its config files name this module in config.imports."""

import data

for _name in ("microsoft", "apple", "subclass", "subclass_exact"):
    data.register(f"icons50_{_name}", "projects.structural.icons50:load_icons50")
for _k in (1, 2, 3, 4):
    data.register(f"cifar100_subclass_k{_k}", "projects.structural.superclasses:load_cifar100_subclass")
data.register("imagenet22k_superclasses", "projects.structural.superclasses:load_superclasses", 224, of_files=True)
