-- Auctions with many bids in five minutes, looked at every minute.
SELECT window.start AS start, auction, COUNT(*) AS bids, MAX(price) AS highest
FROM bids
GROUP BY window(ts, '5 minutes', '1 minute'), auction
HAVING COUNT(*) >= 30
