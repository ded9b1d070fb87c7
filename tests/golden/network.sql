-- Filters and joins are one network: equal and narrower conditions share nodes, whatever their spelling.
-- name: expensive
SELECT auction, price FROM bids WHERE price > 1000;
-- name: expensive_on_google
SELECT bidder, price + 1 AS next FROM bids WHERE channel = 'Google' AND NOT price <= 1000;
-- name: outbid
SELECT x.auction, x.price AS before, y.price AS after FROM bids x, bids y
WHERE x.auction = y.auction AND x.price > 1000 AND y.price > 1000 AND y.price > x.price
  AND y.ts >= x.ts AND y.ts <= x.ts + INTERVAL 20 SECONDS;
-- name: outbid_soon
SELECT x.auction, y.price - x.price AS raised FROM bids x JOIN bids y ON y.auction = x.auction
WHERE x.price - y.price < 0 AND 1000 < x.price AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 10 SECONDS
  AND y.price > 1000;
-- name: around_clicks
SELECT c.page, b.auction FROM clicks c, bids b
WHERE b.ts BETWEEN c.at AND c.at + INTERVAL 100 MILLISECONDS AND c.page IN ('/', '/a') AND b.bidder = 3;
-- name: per_minute
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), auction;
