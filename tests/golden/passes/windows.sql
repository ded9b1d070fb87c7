-- A long window with few edges need not be put together from the fragments of a fine one.
-- name: fine
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '2 seconds', '1 second'), auction;
-- name: uneven
SELECT auction, MAX(price) AS highest FROM bids
GROUP BY window(ts, '7 seconds', '3 seconds'), auction;
-- name: coarse
SELECT auction, COUNT(*) AS n FROM bids
GROUP BY window(ts, '10 minutes', '2 minutes'), auction;
-- name: coarser
SELECT auction, SUM(price) AS total FROM bids
GROUP BY window(ts, '10 minutes', '4 minutes'), auction;
