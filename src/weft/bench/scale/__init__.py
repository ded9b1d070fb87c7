"""The part `scale` of ``weft bench mixed``: `benchmark` measures a hundred thousand queries beside a thousand."""
