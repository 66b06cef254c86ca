"""A study small enough for tests: few images of the embedded dataset, the small network."""

from configs import default


def config(**train):
    """Default config shrunk to seconds; keyword arguments override config.train."""
    tiny = default.get_config()
    tiny.dataset.train_limit = 160
    tiny.dataset.test_limit = 70
    tiny.train.epochs = 2
    tiny.train.batch_size = 32
    tiny.train.learning_rate = 0.05
    tiny.train.milestones = (1,)
    tiny.eval.batch_size = 32
    tiny.train.update(train)
    return tiny
