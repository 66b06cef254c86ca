"""Writes the parity report in Markdown from the numbers of benchmarks/parity."""

from benchmarks.timing import markdown
from runtime import artifacts
from tests.reference.imagenet_c.expected import SIDES

# How the peer differs from the original on images of 32x32; corruptions that are not named are the same computation.
DEPARTURES = {
    "glass_blur": "same copies, its own random generator",
    "motion_blur": "sums in floats, without the original's 16-bit step; stops, without renormalising, where the motion "
    "leaves the image: dark at the higher severities",
    "zoom_blur": "no centring of the enlarged layers",
    "snow": "layer not centred, rounded instead of truncated, no 8-bit step before the blur",
    "frost": "six photographs, one of which the original never draws, enlarged by 1.1; ours: procedural textures",
    "fog": "fractal as large as the image (32); ours and the original's at these levels: a corner of 256",
    "elastic_transform": "another algorithm: no affine map, fields in proportion to the image, not in pixels of 244",
}

_INTRODUCTION = """# Parity with the originals

This page compares the images of `imagenet_c` and `imagenet_c_extra` with images of the original code, at every severity. Results
are 8-bit levels, truncated as in the original. `python -m benchmarks.parity` measures the numbers of the first four
sections and keeps them in `benchmarks/results/parity.json`. [Other benchmarks](#other-benchmarks) are at the end.
"""

_PIXELS = """## Pixels, given the draws

A cell is the largest difference in levels / the per cent of values that differ. The reference is the tests' independent float64
code in NumPy, SciPy and Pillow, which gets our sampler's random numbers. The images are a procedural scene and photographs, of the
size that the table names. Values that are whole numbers in exact arithmetic may fall to either side of the truncation, which makes a
difference of one level (brightness, saturate, frost and defocus_blur, also between two float64 orders of summation). A photon of
shot_noise, a flake of snow or an edge of spatter would make a larger difference if float32 decided it differently.
"""

_GOLDEN = """## Pixels of the original code

A cell is the largest difference in levels / the per cent of values that differ, for the corruptions without randomness. The original
code made its images from 64 CIFAR-10 photographs (32x32, table `cifar`) and 12 photographs of 224x224 (table `imagenet`).
"""

_FEATURES = """## Distributions

24 features describe an image and its corruption: means and deviations of the colours, size and quantiles of the change, power spectrum,
autocorrelation, correlation between channels. A cell names the worst feature and gives the distance between our mean and the
original's, in standard errors of their difference. Both sides start from the same photographs, but the standard errors treat
photographs as random. So they are right for pure noise and too wide for features that depend on the picture, where typical values lie
well below 1. A star precedes the number of features that differ by more than 3 standard errors + 2 %.

{far} of {number} features differ by more than 3 standard errors; of {number} independent normal numbers, {chance:.0f} would.
"""

_ERRORS = """## Error rate of a classifier

Top-1 error (per cent) of one trained network on our images / on the images of imagecorruptions-imaug {peer}, at severities 1 to 5, with
the mean difference and its standard error over images. Random corruptions draw differently on the two sides. The peer has only the
parameters for 224x224, so both sides use the table `imagenet` on {number} test images of 32x32. This is far harsher than CIFAR-10-C
and no benchmark. Network: {model}; clean error {clean:.1f} %.
"""


def report(data, page=""):
    """Writes all sections as Markdown; the sections from `## Other benchmarks` on are those of an earlier `page`.

    `data` is {section: {"record": ..., "rows": ...}} of the measured sections among `pixels`, `golden`, `features`, `errors`; "later" is
    {name: record} of rows that were measured after the others.
    """
    sections = {"pixels": (_PIXELS, _differences), "golden": (_GOLDEN, _differences)}
    sections |= {"features": (_FEATURES, _features), "errors": (_ERRORS, _errors)}
    parts = [_INTRODUCTION]
    for section, (text, write) in sections.items():
        part = text.splitlines()[0] + "\n\nNot measured.\n"
        if section in data:
            record, rows = data[section]["record"], data[section]["rows"]
            if section == "pixels":
                rows = {
                    f"Table `{table}`, {side}x{side}": rows[table] for table, side in SIDES.items() if table in rows
                }
            elif section != "errors":
                rows = {f"{size}x{size}": part for size, part in rows.items()}
            part = f"{write(text, rows)}\n{_made(record)}\n"
            for name, later in data[section].get("later", {}).items():
                part += f"\nRows of {name.split('/')[1]}: {_made(later)}\n"
        parts.append(part)
    _, heading, others = page.partition("## Other benchmarks")
    return "\n".join([*parts, heading + others] if heading else parts)


def _made(record):
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return f"`{record['command']}`  \nrevision {artifacts.short(record['revision'])}, {versions}; {record['machine']}"


_LEVELS = [f"severity {k}" if k == 1 else str(k) for k in range(1, 6)]


def _difference(pair):
    largest, share = pair
    return "0" if largest == 0 else f"{largest} / {_per_cent(share)}"


def _per_cent(share):
    return f"{share:.2f}" if share >= 0.01 else f"{share:.1g}" if share else "0"


def _tables(parts, cell):
    """Writes a table for each part: a row for each corruption, a cell for each severity."""
    written = ""
    for title, rows in parts.items():
        lines = [[name.split("/")[1], *map(cell, row)] for name, row in rows.items()]
        written += f"\n{title}\n\n" + markdown(["", *_LEVELS], lines)
    return written


def _differences(text, parts):
    comparisons = [(share, largest, name) for p in parts.values() for name, row in p.items() for largest, share in row]
    equal, nearly = sum(share == 0 for share, _, _ in comparisons), sum(0 < share <= 0.1 for share, _, _ in comparisons)
    share, largest, name = max(comparisons)
    most = max(largest for _, largest, _ in comparisons)
    summary = (
        f"\n{len(comparisons)} comparisons: {equal} equal, {nearly} equal on 99.9 % of values or more; the largest difference is "
        f"{most}, the largest share {_per_cent(share)} % ({name.split('/')[1]}, by {largest}).\n"
    )
    return text + summary + _tables(parts, _difference)


def _features(text, parts):
    def cell(figures):
        worst, feature, beyond, *_ = figures
        short = feature.removesuffix("_1_25_50_75_99").removeprefix("log10_").removesuffix("_8bins")
        return f"{worst:.1f} {short.replace('_', ' ')}" + (f" *{beyond}" if beyond else "")

    cells = [c for rows in parts.values() for row in rows.values() for c in row]
    far, number = sum(c[3] for c in cells), sum(c[4] for c in cells)
    return text.format(far=far, number=number, chance=0.0027 * number) + _tables(parts, cell)


def _errors(introduction, rows):
    lines = []
    for name, row in rows["rows"].items():
        short = name.split("/")[1]
        pairs = [f"{a:.1f} / {b:.1f}" for a, b in zip(row["ours"], row["peer"], strict=True)]
        lines.append([short, *pairs, f"{row['difference']:+.2f} ± {row['se']:.2f}", DEPARTURES.get(short, "")])
    same = [row for name, row in rows["rows"].items() if name.split("/")[1] not in DEPARTURES]
    mean = sum(row["difference"] for row in same) / len(same) if same else 0.0
    text = f"\nMean difference over the {len(same)} corruptions where the peer is the original: {mean:+.2f}.\n"
    table = markdown(["", *_LEVELS, "difference", "where the peer departs"], lines)
    return introduction.format(**rows) + text + "\n" + table
