-- Bids, turnover and prices of every minute.
SELECT window.start AS start, COUNT(*) AS bids, SUM(price) AS turnover, AVG(price) AS mean_price
FROM bids
GROUP BY window(ts, '1 minute')
