-- Two of the group-by sets are computed from the fragments of the third instead of from the rows.
-- name: both
SELECT channel, auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), channel, auction;
-- name: channels
SELECT channel, COUNT(*) AS n, MIN(price) AS least FROM bids
GROUP BY window(ts, '1 minute'), channel;
-- name: auctions
SELECT auction, COUNT(DISTINCT channel) AS channels FROM bids
GROUP BY window(ts, '2 minutes', '1 minute'), auction;
