"""A network in float64 NumPy with gradients by hand, and the updates of the methods on it.

x -> BN -> 1x1 convolution -> ReLU -> BN -> mean over pixels -> linear.
"""

import functools

import numpy as np
from scipy import special

EPSILON = 1e-5
NORMS = {"first": 3, "second": 5}
CLASSES = 4
softmax, log_softmax = (functools.partial(one, axis=-1) for one in (special.softmax, special.log_softmax))


def entropy(z):
    return -(softmax(z) * log_softmax(z)).sum(-1)


def d_entropy(z):
    """dH/dz_j = -p_j (ln p_j + H)."""
    return -softmax(z) * (log_softmax(z) + entropy(z)[:, None])


def drawn(seed=0, head=1.5):
    """(weights, theta, moments) of a network whose layers are far from the identity."""
    rng = np.random.default_rng(seed)
    weights = {
        "kernel": rng.normal(0, 1, (3, 5)),
        "head": rng.normal(0, head, (5, CLASSES)),
        "bias": rng.normal(0, 0.3, CLASSES),
    }
    theta = {n: {"scale": rng.uniform(0.6, 1.4, c), "bias": rng.normal(0, 0.3, c)} for n, c in NORMS.items()}
    moments = {n: {"mean": rng.normal(0.5, 0.3, c), "var": rng.uniform(0.5, 2, c)} for n, c in NORMS.items()}
    return weights, theta, moments


class Norm:
    """Normalises by keep x stored + (1 - keep) x batch; `keep` None takes the stored statistics. `after` are the new stored ones."""

    def __init__(self, x, theta, stored, keep, unbiased=False, moves=None):
        rows = self.rows = x.reshape(-1, x.shape[-1])
        self.n, self.keep, self.unbiased, self.shape = len(rows), 1.0 if keep is None else keep, unbiased, x.shape
        self.mu, biased = rows.mean(0), rows.var(0)
        self.factor = self.n / (self.n - 1) if unbiased else 1.0
        self.mean = self.keep * stored["mean"] + (1 - self.keep) * self.mu
        self.var = self.keep * stored["var"] + (1 - self.keep) * biased * self.factor
        self.after = {"mean": self.mean, "var": self.var}
        if moves is not None:
            whole = biased * self.n / (self.n - 1)
            self.after = {
                "mean": (1 - moves) * stored["mean"] + moves * self.mu,
                "var": (1 - moves) * stored["var"] + moves * whole,
            }
        self.r, self.scale = 1 / np.sqrt(self.var + EPSILON), theta["scale"]
        self.hat = (rows - self.mean) * self.r
        self.out = (self.hat * theta["scale"] + theta["bias"]).reshape(x.shape)

    def back(self, d):
        """(dL/dx, {scale, bias})."""
        d = d.reshape(self.rows.shape)
        gradient = {"scale": (d * self.hat).sum(0), "bias": d.sum(0)}
        d_hat = d * self.scale
        d_var = -0.5 * self.r**3 * (d_hat * (self.rows - self.mean)).sum(0)
        d_mean = -self.r * d_hat.sum(0)
        share = 1 - self.keep
        dx = d_hat * self.r + share * (d_var * self.factor * 2 * (self.rows - self.mu) + d_mean) / self.n
        return dx.reshape(self.shape), gradient


class Pass:
    """One forward pass: `logits`, `features`, `after`; `back` gives the gradient of theta."""

    def __init__(self, network, x, theta=None, moments=None, keep=None, unbiased=False, moves=None):
        weights, own, stored = network
        theta, moments = theta or own, moments or stored
        how = (keep, unbiased, moves)
        self.weights = weights
        self.first = Norm(np.asarray(x, np.float64), theta["first"], moments["first"], *how)
        self.linear = self.first.out @ weights["kernel"]
        self.second = Norm(np.maximum(self.linear, 0), theta["second"], moments["second"], *how)
        self.features = self.second.out.mean((1, 2))
        self.logits = self.features @ weights["head"] + weights["bias"]
        self.after = {"first": self.first.after, "second": self.second.after}

    def back(self, d_logits):
        pixels = self.second.out.shape[1] * self.second.out.shape[2]
        d = (d_logits @ self.weights["head"].T)[:, None, None, :] / pixels
        d, second = self.second.back(np.broadcast_to(d, self.second.out.shape))
        _, first = self.first.back((d * (self.linear > 0)) @ self.weights["kernel"].T)
        return {"first": first, "second": second}


def each(function, *trees):
    """The function of every leaf of {layer: {kind: array}}."""
    return {n: {k: function(*(tree[n][k] for tree in trees)) for k in trees[0][n]} for n in trees[0]}


class Adam:
    def __init__(self, rate):
        self.rate, self.steps = rate, 0

    def __call__(self, theta, gradient):
        if not self.steps:
            self.m = self.v = each(np.zeros_like, theta)
        self.steps += 1
        self.m = each(lambda m, g: 0.9 * m + 0.1 * g, self.m, gradient)
        self.v = each(lambda v, g: 0.999 * v + 0.001 * g * g, self.v, gradient)
        m_hat, v_hat = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        return each(lambda p, m, v: p - self.rate * (m / m_hat) / (np.sqrt(v / v_hat) + 1e-8), theta, self.m, self.v)


class Sgd:
    def __init__(self, rate, nesterov):
        self.rate, self.nesterov, self.buffer = rate, nesterov, None

    def __call__(self, theta, gradient):
        before = self.buffer or each(np.zeros_like, theta)
        self.buffer = each(lambda b, g: 0.9 * b + g, before, gradient)
        used = each(lambda b, g: g + 0.9 * b, self.buffer, gradient) if self.nesterov else self.buffer
        return each(lambda p, g: p - self.rate * g, theta, used)


def bn_ema(network, batches, momentum=0.1):
    moments = network[2]
    for x in batches:
        moments = Pass(network, x, moments=moments, keep=0.0, moves=momentum).after
        yield Pass(network, x, moments=moments).logits


def tent(network, batches, optimizer):
    theta = network[1]
    for x in batches:
        one = Pass(network, x, theta, keep=0.0)
        yield one.logits
        theta = optimizer(theta, one.back(d_entropy(one.logits) / len(x)))


def lame(network, batches, neighbours=5, iterations=100):
    """Y of each batch, one row at a time."""
    for x in batches:
        one = Pass(network, x)
        z = one.features / np.linalg.norm(one.features, axis=1, keepdims=True)
        distance = np.sqrt(((z[:, None] - z[None]) ** 2).sum(-1))
        s = np.mean([np.sort(row)[neighbours - 1] for row in distance])
        w = np.exp(-(distance**2) / (2 * s**2))
        p, y, before = softmax(one.logits), softmax(one.logits), None
        for _ in range(iterations + 1):
            energy = (-y * np.log(p + 1e-10) - y * (w @ y) + y * np.log(y)).sum()
            if before is not None and abs(energy - before) <= 1e-8 * abs(before):
                break
            before = energy
            y = softmax(np.log(p + 1e-10) + w @ y)
        yield y


def eta(network, batches, optimizer, margin, similarity, fisher=None, weight=0.0):
    """Logits of each batch, and which samples were chosen."""
    theta, mean, bound = network[1], None, margin * np.log(CLASSES)
    for x in batches:
        one = Pass(network, x, theta, keep=0.0)
        p, h = softmax(one.logits), entropy(one.logits)
        chosen = h < bound
        if mean is not None:
            cosine = p @ mean / np.linalg.norm(p, axis=1) / np.linalg.norm(mean)
            chosen &= np.abs(cosine) < similarity
        yield one.logits, chosen
        if not chosen.any():
            continue
        mean = p[chosen].mean(0) if mean is None else 0.9 * mean + 0.1 * p[chosen].mean(0)
        d = d_entropy(one.logits) * (np.exp(bound - h) * chosen / chosen.sum())[:, None]
        gradient = one.back(d)
        if fisher is not None:
            gradient = each(lambda g, f, a, b: g + 2 * weight * f * (a - b), gradient, fisher, theta, network[1])
        theta = optimizer(theta, gradient)


def fisher(network, batches):
    total = None
    for x in batches:
        one = Pass(network, x, keep=0.0)
        p = softmax(one.logits)
        d = (p - np.eye(CLASSES)[p.argmax(1)]) / len(x)
        square = each(np.square, one.back(d))
        total = square if total is None else each(np.add, total, square)
    return each(lambda t: t / len(batches), total)


def sar(network, batches, rate, margin, rho, least):
    """Logits of each batch, and whether it ended in a reset."""
    theta, optimizer, level, bound = network[1], Sgd(rate, False), None, margin * np.log(CLASSES)
    for x in batches:
        one = Pass(network, x, theta, keep=0.0)
        reliable, logits = entropy(one.logits) < bound, one.logits
        reset = False
        if reliable.any():
            g = one.back(d_entropy(logits) * (reliable / reliable.sum())[:, None])
            norm = np.sqrt(sum((leaf**2).sum() for layer in g.values() for leaf in layer.values()))
            sharp = each(lambda p, g, norm=norm: p + rho * g / (norm + 1e-12), theta, g)
            two = Pass(network, x, sharp, keep=0.0)
            h = entropy(two.logits)
            kept = reliable & (h < bound)
            if kept.any():
                theta = optimizer(theta, two.back(d_entropy(two.logits) * (kept / kept.sum())[:, None]))
                level = h[kept].mean() if level is None else 0.9 * level + 0.1 * h[kept].mean()
                if level < least:
                    theta, optimizer, level, reset = network[1], Sgd(rate, False), None, True
        yield logits, reset


def from_softmax(z, a):
    """dL/dz of dL/dp = a."""
    p = softmax(z)
    return p * (a - (a * p).sum(-1, keepdims=True))


def unit(values):
    return (values - values.min()) / (values.max() - values.min())


def roid(network, batches, optimizer, views, tau=1 / 3, pull=0.01):
    """Logits of each batch times their prior, and which samples were kept."""
    theta, mean = network[1], np.full(CLASSES, 1 / CLASSES)
    for x in batches:
        one = Pass(network, x, theta, keep=0.0)
        p, size = softmax(one.logits), len(x)
        cosine = p @ mean / np.linalg.norm(p, axis=1) / np.linalg.norm(mean)
        diverse, certain = unit(1 - cosine), unit(-entropy(one.logits))
        kept = diverse >= diverse.mean()
        w = (np.exp(diverse * certain / tau) * kept / size)[:, None]
        two = Pass(network, views(x[kept]), theta, keep=0.0)
        q, ratio = np.minimum(p, 0.99), np.minimum(p, 0.99) / (1 - np.minimum(p, 0.99)) + 1e-5
        d_ratio = -(np.log(ratio) + q / (1 - q) ** 2 / ratio) * (p < 0.99)
        d_one = w * from_softmax(one.logits, d_ratio)
        log_p, log_other = log_softmax(one.logits)[kept], log_softmax(two.logits)
        other = softmax(two.logits)
        d_one[kept] += 0.5 * w[kept] * (from_softmax(one.logits[kept], -log_other) + p[kept] - other)
        d_two = 0.5 * w[kept] * (from_softmax(two.logits, -log_p) + other - p[kept])
        prior = p.mean(0)
        smooth = max(1 / size, 1 / CLASSES) / prior.max()
        yield one.logits * (prior + smooth) / (1 + smooth * CLASSES), kept
        theta = optimizer(theta, each(np.add, one.back(d_one), two.back(d_two)))
        theta = each(lambda a, b: (1 - pull) * a + pull * b, theta, network[1])
        mean = 0.9 * mean + 0.1 * p.mean(0)


class Memory:
    """Lists by class, as in the paper."""

    def __init__(self, capacity):
        self.capacity, self.of_class = capacity, [[] for _ in range(CLASSES)]

    def items(self):
        return [item for items in self.of_class for item in items]

    def score(self, age, u):
        return 1 / (1 + np.exp(-age / self.capacity)) + u / np.log(CLASSES)

    def offer(self, image, label, u):
        enters = True
        if len(self.of_class[label]) < self.capacity / CLASSES:
            if len(self.items()) == self.capacity:
                most = max(map(len, self.of_class))
                enters = self.drop([items for items in self.of_class if len(items) == most], self.score(0, u))
        else:
            enters = self.drop([self.of_class[label]], self.score(0, u))
        if enters:
            self.of_class[label].append({"image": image, "u": u, "age": 0})
        for item in self.items():
            item["age"] += 1

    def drop(self, lists, score):
        found = [
            (self.score(i["age"], i["u"]), k, place) for k, items in enumerate(lists) for place, i in enumerate(items)
        ]
        best, k, place = max(found)
        if best > score:
            lists[k].pop(place)
        return best > score


def rotta(network, batches, optimizer, views, capacity, every, alpha, nu):
    """The teacher's logits of each batch, and the number of items in the memory."""
    student = teacher = network[1]
    moments = teacher_moments = network[2]
    memory, seen = Memory(capacity), 0
    for x in batches:
        logits = Pass(network, x, teacher, teacher_moments).logits
        p = softmax(logits)
        for image, label, u in zip(x, logits.argmax(1), -(p * np.log(p + 1e-6)).sum(1), strict=True):
            memory.offer(image, label, u)
            seen += 1
            if seen % every:
                continue
            images = np.stack([item["image"] for item in memory.items()])
            age = np.array([item["age"] for item in memory.items()]) / capacity
            one = Pass(network, images, teacher, teacher_moments, keep=1 - alpha)
            two = Pass(network, views(images), student, moments, keep=1 - alpha)
            weight = np.exp(-age) / (1 + np.exp(-age)) / len(images)
            gradient = two.back(weight[:, None] * (softmax(two.logits) - softmax(one.logits)))
            teacher_moments, moments = one.after, two.after
            student = optimizer(student, gradient)
            teacher = each(lambda t, s: (1 - nu) * t + nu * s, teacher, student)
        yield logits, len(memory.items())
