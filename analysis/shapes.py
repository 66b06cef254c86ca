"""What the JSON files of a study must hold for those who read them; any of them may hold more."""

from runtime.json_shapes import NULL, Either, Maybe

_NUMBER = Either(float, NULL)  # null stands for NaN

CONFIG = {
    "dataset": Maybe({"image_size": Maybe(int)}),
    "model": Maybe({}),
    "train": Maybe(
        {
            "milestones": Maybe([float]),
            "corruption_options": Maybe({str: {"range": Maybe(Either((float, float), NULL))}}),
        }
    ),
    "study": Maybe({"threshold": Maybe(float)}),
}
_RUN = {"git_revision": Maybe(str), "device": Maybe(str)}
PROVENANCE = {**_RUN, "versions": Maybe({str: str}), "continued": Maybe([_RUN])}
COVERAGE = {
    "benchmark": [str],
    "corruptions": {
        str: {"overlap": _NUMBER, "se": _NUMBER, "member": Either(str, NULL), "p": _NUMBER, "verdict": str}
    },
    "inputs": Maybe({str: str}),
}
BENCHMARK = {
    "members": [str],
    "threshold": float,
    "strict": bool,
    "mean_overlap": _NUMBER,
    "summary": str,
    "number_of_ties": Maybe(int),
    "winner_is_exact": Maybe(bool),
    "dropped": Maybe([str]),
    "inputs": Maybe({str: str}),
    "written": Maybe(str),
    "coverage": Maybe(COVERAGE),  # of earlier revisions: now in coverage.json
    "categories": Maybe([[str]]),
}
STABILITY = {"members": {str: float}, "sets": [([str], float)], "resamples": int, "sizes": {str: float}}
_PAIR = (float, float)
CALIBRATED = {
    "range": _PAIR,
    "unit": str,
    "robustness": _PAIR,
    "robustness_se": (_NUMBER, _NUMBER),
    "mean_robustness": float,
    "mean_robustness_se": _NUMBER,
    "monotone": bool,
    "capped": (bool, bool),
}
RANGES = {"corruptions": {str: Either(CALIBRATED, {"range": _PAIR})}}  # published ones say no more
COMPARISON = {
    "first": str,
    "second": str,
    "threshold": float,
    "matrices": {
        "pairs": int,
        "spearman": _NUMBER,
        "spearman_interval": (_NUMBER, _NUMBER),
        "pearson": _NUMBER,
        "mean_difference": _NUMBER,
        "standardised": _NUMBER,
    },
    "benchmarks": [{"threshold": float, "first": [str], "second": [str], "shared": [str], "jaccard": float}],
    "training_seconds": Either(_PAIR, NULL),
    "inputs": Maybe({str: str}),
}
TIMING = {"training_seconds": {str: float}}
SECTION = {"title": str, "facts": [str], "header": [str], "rows": [[str]], "figures": [str]}
