"""Runs other platforms' code on this platform."""

import jax


def as_on(platform, monkeypatch):
    """Has what is traced from now on take its form for `platform`, say "cuda"."""

    def chosen(*arrays, **forms):
        return forms.get(platform, forms["default"])(*arrays)

    monkeypatch.setattr(jax.lax, "platform_dependent", chosen)
