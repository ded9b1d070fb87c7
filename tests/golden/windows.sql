-- Windows that share one node: classes that another contains vanish from its fragments.
-- name: per_minute
SELECT window.start, auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), auction;
-- name: sliding
SELECT window.start, auction, AVG(price) AS mean FROM bids
GROUP BY window(ts, '1 hour', '5 minutes'), auction;
-- name: offset
SELECT auction, MAX(price) AS highest FROM bids
GROUP BY auction, window(ts, '90 seconds', '1 minute', '10 seconds');
-- name: bracket
SELECT auction, MIN(price) AS lowest FROM bids [RANGE 1 SECOND SLIDE 10 SECONDS] GROUP BY auction;
