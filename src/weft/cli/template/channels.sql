-- Several queries in one file: each stands under its name.

-- name: channel_turnover
SELECT channel, window.start AS start, SUM(price) AS turnover
FROM bids
GROUP BY channel, window(ts, '10 minutes', '2 minutes');

-- name: channel_spread
SELECT channel, window.start AS start, MAX(price) - MIN(price) AS spread,
       COUNT(*) FILTER (WHERE price >= 100000) AS large_bids
FROM bids
GROUP BY channel, window(ts, '3 minutes');
