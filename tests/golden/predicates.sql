-- Predicates become bits of one signature; equal ones are one bit, whatever their spelling.
-- name: large
SELECT channel, COUNT(*) AS n, SUM(price) AS total FROM bids WHERE price >= 10000
GROUP BY window(ts, '10 seconds'), channel;
-- name: large_again
SELECT channel, SUM(price) / COUNT(*) AS mean FROM bids
WHERE   `price`  >=  10000
GROUP BY window(ts, '20 seconds', '10 seconds'), channel HAVING COUNT(*) > 5;
-- name: small
SELECT channel, COUNT(*) FILTER (WHERE auction = 7) AS sevens FROM bids WHERE price < 100
GROUP BY window(ts, '10 seconds'), channel;
-- name: risky
SELECT channel, SUM(1000 / price) AS inverse FROM bids WHERE price > 0
GROUP BY window(ts, '10 seconds'), channel;
