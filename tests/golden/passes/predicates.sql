-- Three thresholds on one attribute are one cut, which a row finds by one search.
-- name: cheap
SELECT channel, COUNT(*) AS n FROM bids WHERE price < 100 GROUP BY window(ts, '1 minute'), channel;
-- name: fair
SELECT channel, COUNT(*) AS n FROM bids WHERE price >= 100 AND price < 10000
GROUP BY window(ts, '1 minute'), channel;
-- name: dear
SELECT channel, SUM(price) AS total FROM bids WHERE price >= 10000
GROUP BY window(ts, '1 minute'), channel;
-- name: seventh
SELECT channel, COUNT(*) AS n FROM bids WHERE auction = 7 GROUP BY window(ts, '1 minute'), channel;
