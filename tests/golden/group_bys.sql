-- A node for every group-by set, and one more for every distinct argument.
-- name: all
SELECT window.end AS until, COUNT(*) AS n, STDDEV_SAMP(price) AS deviation FROM bids
GROUP BY window(ts, '1 minute');
-- name: bidders
SELECT channel, COUNT(DISTINCT bidder) AS bidders, COUNT(*) AS n FROM bids
GROUP BY window(ts, '5 minutes', '1 minute'), channel;
-- name: channel_prices
SELECT channel, APPROX_PERCENTILE(price, 0.5) AS median, LAST(price) AS latest FROM bids
GROUP BY channel, window(ts, '5 minutes');
-- name: buckets
SELECT auction % 10 AS bucket, APPROX_COUNT_DISTINCT(bidder) AS bidders FROM bids
WHERE channel = 'Google' GROUP BY auction % 10, window(ts, '1 minute');
