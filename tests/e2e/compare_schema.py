"""anyperf-compare-1 and anyperf-baseline-1 of doc/json.md: a member more or less is an error, as
is another type."""

NUMBER = (int, float)
OPTIONAL = "?"


class Either:
    """One of these words."""

    def __init__(self, *words):
        self.words = words


REASON = {"cause": str, "errno": int, "why": str, "remedy": str}
COUNT = {"event": str, "status": Either("ok", "not-counted", "not-supported"), "value?": int,
         "exact?": bool, "per_run?": [int], "reason?": REASON}
TIMES = {"quantity": Either("time", "cpu-time", "peak-memory", "faults"),
         "unit": Either("s", "bytes", ""), "median": NUMBER, "min": NUMBER, "low_quartile": NUMBER,
         "high_quartile": NUMBER, "max": NUMBER, "outliers": int, "per_run": [NUMBER]}
SYMBOL = {"symbol": str, "change": NUMBER, "exact": bool, "may_be_off": NUMBER}
CHANGE = {"event": str, "exact": bool, "change": int, "change_min": int, "change_max": int,
          "change_percent?": NUMBER}
RATIO = {"quantity": TIMES["quantity"], "ratio": NUMBER, "ratio_low?": NUMBER,
         "ratio_high?": NUMBER, "shown": Either("more", "less", "no-difference", "too-few-runs")}
COMPARE = {"schema": Either("anyperf-compare-1"), "pmu": Either("virtual", "kernel"),
           "interrupted": bool, "from?": str, "to?": str, "baseline_made?": str,
           "commands": [{"name": str, "baseline?": str, "command": [str], "not_fixed?": [str],
                         "counts?": [COUNT], "times?": [TIMES]}],
           "comparisons": [{"of": str, "against": str, "counts": [CHANGE], "symbols?": [SYMBOL],
                            "times?": [RATIO]}],
           "gates": [{"gate": str, "of": str, "result": Either("held", "broken", "inconclusive"),
                      "text": str}]}
BASELINE = {"schema": Either("anyperf-baseline-1"), "command": [str], "from?": str, "to?": str,
            "build_id": str, "environment": {"*": str}, "cpu_vendor": str, "cpu_features": str,
            "cpus?": int, "machine?": str, "libc": str, "seed": int, "directory": str, "user": int,
            "kernel": str, "stack_limit": int, "not_fixed": [str],
            "counts": [{"event": str, "min": int, "value": int, "max": int}],
            "symbols?": {"*": int}, "symbols_left_out?": int}


def check(value, schema, where="it"):
    """Raises AssertionError where VALUE is not what SCHEMA says."""
    if isinstance(schema, Either):
        assert value in schema.words, (where, value, schema.words)
    elif isinstance(schema, list):
        assert isinstance(value, list), (where, value)
        for i, member in enumerate(value):
            check(member, schema[0], f"{where}[{i}]")
    elif isinstance(schema, dict):
        assert isinstance(value, dict), (where, value)
        if "*" in schema:
            schema = {key: schema["*"] for key in value}
        known = {key.rstrip(OPTIONAL): of for key, of in schema.items()}
        assert set(value) <= set(known), (where, set(value) - set(known))
        missing = {key for key in schema if not key.endswith(OPTIONAL)} - set(value)
        assert not missing, (where, missing)
        # In the order of the page.
        assert list(value) == [key for key in known if key in value], (where, list(value))
        for key, member in value.items():
            check(member, known[key], f"{where}.{key}")
    else:
        assert isinstance(value, schema), (where, value, schema)
        # A truth value is an int in Python, and not in JSON.
        assert schema is bool or not isinstance(value, bool), (where, value)
