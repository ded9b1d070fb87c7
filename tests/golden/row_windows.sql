-- Windows of rows share among themselves; windows of time on the same stream have their own plan.
-- name: sliding
SELECT window.start, auction, COUNT(*) AS n FROM bids [RANGE 1000 ROWS SLIDE 100 ROWS]
GROUP BY auction;
-- name: uneven
SELECT window, auction, MAX(price) AS highest FROM bids [RANGE 250 ROWS SLIDE 100 ROWS]
WHERE channel = 'Google' GROUP BY auction;
-- name: sample
SELECT window.end, AVG(price) AS mean FROM bids [RANGE 10 ROWS SLIDE 1000 ROWS];
-- name: minutes
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), auction;
