-- Two streams have a plan each; what has no shared form says why.
-- name: bids_per_second
SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 second');
-- name: clicks_per_second
SELECT page, COUNT(*) AS n FROM clicks GROUP BY window(at, '1 second'), page;
-- name: names
SELECT COLLECT_LIST(channel) AS channels FROM bids GROUP BY window(ts, '1 minute');
