-- Large bids on the web channels only, in windows that start half a minute past.
SELECT window.start AS start, COUNT(*) AS bids, STDDEV_SAMP(price) AS deviation
FROM bids
WHERE price >= 10000 AND channel IN ('Google', 'Baidu')
GROUP BY window(ts, '90 seconds', '1 minute', '30 seconds')
