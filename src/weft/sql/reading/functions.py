"""What weft knows of Spark's functions by name.

Aggregates with a partial form and their canonical names; other aggregates; functions whose
value is no function of their arguments; and the built-in scalar functions, with result types
where these are simple. Anything else may be a user's function: only Spark knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.algebra.types import FRACTIONAL, INTEGRAL, SqlType


def words(text: str) -> frozenset[str]:
    """A set of words written as one text."""
    return frozenset(text.split())


AGGREGATES: Final[dict[str, str]] = {
    "any": "bool_or",
    "any_value": "first",
    "approx_count_distinct": "approx_count_distinct",
    "approx_percentile": "approx_percentile",
    "avg": "avg",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "count": "count",
    "count_if": "count_if",
    "every": "bool_and",
    "first": "first",
    "first_value": "first",
    "last": "last",
    "last_value": "last",
    "max": "max",
    "max_by": "max_by",
    "mean": "avg",
    "min": "min",
    "min_by": "min_by",
    "percentile_approx": "approx_percentile",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "sum": "sum",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
}
"""Aggregates that weft shares, by every name Spark has for them."""

UNSHARED_AGGREGATES: Final = words(
    """approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg bit_and bit_or bit_xor
    bitmap_and_agg bitmap_construct_agg bitmap_or_agg collect_list collect_set collect_union corr
    count_min_sketch covar_pop covar_samp grouping grouping_id histogram_numeric hll_sketch_agg
    hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis listagg measure
    median mode percentile percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness
    string_agg theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer vector_avg
    vector_sum"""
)

_PERCENTILE: Final = "approx_percentile(x, p) is shared"
_SKETCH: Final = "approx_count_distinct(x) is shared"
_FROM_SUMS: Final = "it follows from count(*), sum(x), sum(y), sum(x * y), which are shared"
_LIST: Final = "count(*), min, max, first and last are shared"
_WINDOW_END: Final = "window.end is the time of a result, and in an aggregation join the column at"

ADVICE: Final[dict[str, str]] = {
    **dict.fromkeys(("median", "percentile", "percentile_cont", "percentile_disc"), _PERCENTILE),
    **dict.fromkeys(("kll_sketch_agg_bigint", "kll_sketch_agg_double"), _PERCENTILE),
    **dict.fromkeys(("hll_sketch_agg", "theta_sketch_agg"), _SKETCH),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "regr_slope", "regr_r2"), _FROM_SUMS),
    **dict.fromkeys(("collect_list", "array_agg", "listagg", "string_agg"), _LIST),
    "collect_set": "count(DISTINCT x) is shared, if the number of values is enough",
    "mode": "a query that groups by the value and counts is shared",
    "histogram_numeric": _PERCENTILE,
    "try_sum": "sum is shared; it raises where the sum is too large",
    "try_avg": "avg is shared",
    "window_time": "window.end is shared; window_time is one microsecond before it",
    "session_window": "a window of fixed length is shared",
    **dict.fromkeys(("now", "current_timestamp", "localtimestamp"), _WINDOW_END),
    **dict.fromkeys(("curdate", "current_date"), _WINDOW_END),
}
"""What to write instead of a function that has no shared form."""

CHANGING: Final = words(
    """curdate current_catalog current_database current_date current_path current_schema
    current_time current_timestamp current_user input_file_block_length input_file_block_start
    input_file_name java_method localtime localtimestamp monotonically_increasing_id now rand
    randn random randstr reflect session_user shuffle spark_partition_id try_reflect uniform user
    uuid"""
)
"""Functions that may give another value for the same row at another time or place."""

ROW_CHANGING: Final = words(
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack"
)

NAMING: Final = frozenset({"arrays_zip", "struct"})
"""Functions whose type depends on the names of their arguments."""

SCALARS: Final = words(
    """abs acos acosh add_months aes_decrypt aes_encrypt array array_append array_compact
    array_contains array_distinct array_except array_insert array_intersect array_join array_max
    array_min array_position array_prepend array_remove array_repeat array_size array_union
    arrays_overlap ascii asin asinh assert_true atan atan2 atanh base64 between bigint
    bin binary bit_count bit_get bit_length bitmap_bit_position bitmap_bucket_number bitmap_count
    boolean bround btrim cardinality cbrt ceil ceiling char char_length character_length chr
    coalesce collate collation concat concat_ws contains conv convert_timezone cos cosh cot crc32
    csc date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees
    double e element_at elt encode endswith equal_null exp expm1 factorial find_in_set flatten
    float floor format_number format_string from_base32 from_csv from_json from_unixtime
    from_utc_timestamp from_xml get get_json_object getbit greatest hash hex hmac hour hypot if
    ifnull ilike initcap instr int is_valid_utf8 is_variant_null isnan isnotnull isnull
    jaro_winkler_similarity json_array_length json_object_keys last_day lcase least left len
    length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim luhn_check make_date
    make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
    make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key
    map_entries map_from_arrays map_from_entries map_keys map_values mask md5 minute mod month
    monthname months_between named_struct nanvl negative next_day nullif nullifzero nvl nvl2
    octet_length overlay parse_json parse_url pi pmod position positive pow power printf quarter
    quote radians regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr repeat replace reverse right rint rlike round rpad rtrim sec
    second sentences sequence sha sha1 sha2 shiftleft shiftright shiftrightunsigned sign signum
    sin sinh size slice smallint sort_array soundex space split split_part sqrt startswith
    str_to_map string substr substring substring_index tan tanh time_diff time_trunc
    timestamp timestamp_micros timestamp_millis timestamp_seconds tinyint to_base32 to_binary
    to_char to_csv to_date to_json to_number to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp to_varchar to_xml translate trim trunc try_add
    try_aes_decrypt try_divide try_element_at try_make_timestamp try_mod try_multiply
    try_parse_json try_parse_url try_subtract try_to_binary try_to_date try_to_number
    try_to_timestamp try_url_decode try_variant_get typeof ucase unbase64 unhex unix_date
    unix_micros unix_millis unix_seconds unix_timestamp upper url_decode url_encode variant_get
    weekday weekofyear when width_bucket xpath xpath_boolean xpath_double xpath_float xpath_int
    xpath_long xpath_number xpath_short xpath_string xxhash64 year zeroifnull"""
)

Rule = Callable[[tuple[SqlType, ...]], SqlType | None]


def _fixed(result: SqlType, *arguments: frozenset[SqlType]) -> Rule:
    def rule(types: tuple[SqlType, ...]) -> SqlType | None:
        fits = len(types) == len(arguments) and all(
            type_ in allowed for type_, allowed in zip(types, arguments)
        )
        return result if fits else None

    return rule


def _either(*rules: Rule) -> Rule:
    def rule(types: tuple[SqlType, ...]) -> SqlType | None:
        return next((found for rule in rules if (found := rule(types)) is not None), None)

    return rule


def _strings(types: tuple[SqlType, ...]) -> SqlType | None:
    return "string" if types and all(type_ == "string" for type_ in types) else None


_STRING: Final = frozenset({"string"})
_INT: Final = frozenset({"int"})
_MOMENT: Final = frozenset({"date", "timestamp"})
_TIMESTAMP: Final = frozenset({"timestamp"})

TOTAL: Final[dict[str, Rule]] = {
    **dict.fromkeys(
        ("upper", "lower", "ucase", "lcase", "trim", "ltrim", "rtrim", "initcap", "reverse"),
        _fixed("string", _STRING),
    ),
    **dict.fromkeys(
        ("length", "len", "char_length", "character_length"), _fixed("int", _STRING)
    ),
    **dict.fromkeys(("left", "right"), _fixed("string", _STRING, _INT)),
    **dict.fromkeys(
        ("substring", "substr"),
        _either(_fixed("string", _STRING, _INT), _fixed("string", _STRING, _INT, _INT)),
    ),
    "concat": _strings,
    **dict.fromkeys(("startswith", "endswith", "contains"), _fixed("boolean", _STRING, _STRING)),
    **dict.fromkeys(
        (
            "year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "quarter",
            "weekday", "weekofyear",
        ),
        _fixed("int", _MOMENT),
    ),
    **dict.fromkeys(("hour", "minute", "second"), _fixed("int", _TIMESTAMP)),
    **dict.fromkeys(
        ("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp"),
        _fixed("bigint", _TIMESTAMP),
    ),
    "to_date": _fixed("date", _MOMENT),
    "date_trunc": _fixed("timestamp", _STRING, _TIMESTAMP),
    **dict.fromkeys(("sqrt", "exp"), _fixed("double", frozenset({"int", "double"}))),
    "isnan": _fixed("boolean", FRACTIONAL),
    **dict.fromkeys(("hash",), _fixed("int", INTEGRAL | _STRING)),
}  # fmt: skip
"""Functions that never raise on arguments of these types, and their result types."""
