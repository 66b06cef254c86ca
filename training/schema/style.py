"""How the weights of style transfer are made: `adain`, of tools.train_style_decoder."""

from runtime.schema import choice, number, several, text, whole

_PATH = "a path, or ''"

SETTINGS = {
    "adain.encoder": text("VGG-19 of tools.train_style_decoder, vgg_normalised.pth; '' draws random values", _PATH),
    "adain.decoder": text("decoder to begin with, decoder.pth; '' draws random values", _PATH),
    "adain.widths": several(
        "channels of the four stages of both; the public weights have 64, 128, 256, 512",
        whole("", 1, 4096),
        4,
        4,
        order="any",
    ),
    "adain.styles": text("pictures of styles; '' draws procedural textures", "a folder of up to 10,000 images, or ''"),
    "adain.drawn": whole("procedural textures that are drawn", 1, 100_000),
    "adain.reading": choice(
        "of the formulas: those of the PyTorch port, or of the paper's own code", "port", "original"
    ),
    "adain.steps": whole("that the decoder is trained; 0 takes it as it is"),
    "adain.batch_size": whole("contents, and as many styles, in a step", 1, 2**20),
    "adain.learning_rate": number("of Adam at its first step", 0, above=True),
    "adain.style_weight": number(
        "of the loss of style; of the reading `original` 0.01 (the paper's code) or 0.1 (its released decoder)", 0
    ),
}
