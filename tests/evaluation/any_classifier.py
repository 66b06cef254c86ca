"""`eval.evaluate` with the fields of its arguments as keywords."""

import dataclasses

import eval as script


def evaluate(predict, images, labels, **given):
    """Makes the arguments of `eval.evaluate` from keywords; `name` is that of the classifier."""
    if "name" in given:
        given["classifier"] = given.pop("name")
    given |= {"predict": predict, "images": images, "labels": labels}

    def made(kind):
        names = [field.name for field in dataclasses.fields(kind) if field.init]
        return kind(**{name: given.pop(name) for name in names if name in given})

    kinds = (script.Classifier, script.TestSet, script.Conditions, script.Names, script.Tables)
    classifier, test_set, conditions, names, tables = map(made, kinds)
    assert not given, given
    return script.evaluate(classifier, test_set, conditions, names=names, tables=tables)
