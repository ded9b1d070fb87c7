-- The distribution of prices, from a mergeable sketch.
SELECT window.end AS until, APPROX_PERCENTILE(price, 0.5) AS median,
       APPROX_PERCENTILE(price, 0.99) AS high
FROM bids
GROUP BY window(ts, '10 minutes', '5 minutes')
