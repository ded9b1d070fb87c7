-- Many windows: base panes instead of edge classes, names summarised.
-- name: w01
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '21 seconds', '10 seconds'), auction;
-- name: w02
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '41 seconds', '13 seconds'), auction;
-- name: w03
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '64 seconds', '16 seconds'), auction;
-- name: w04
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '20 seconds', '19 seconds'), auction;
-- name: w05
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '46 seconds', '22 seconds'), auction;
-- name: w06
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '75 seconds', '25 seconds'), auction;
-- name: w07
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '113 seconds', '28 seconds'), auction;
-- name: w08
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '33 seconds', '31 seconds'), auction;
-- name: w09
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '68 seconds', '34 seconds'), auction;
-- name: w10
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '112 seconds', '37 seconds'), auction;
-- name: w11
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '162 seconds', '40 seconds'), auction;
-- name: w12
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '43 seconds', '43 seconds'), auction;
-- name: w13
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '93 seconds', '46 seconds'), auction;
-- name: w14
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '149 seconds', '49 seconds'), auction;
-- name: w15
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '208 seconds', '52 seconds'), auction;
-- name: w16
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '56 seconds', '55 seconds'), auction;
-- name: w17
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '118 seconds', '58 seconds'), auction;
-- name: w18
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '183 seconds', '61 seconds'), auction;
-- name: w19
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '257 seconds', '64 seconds'), auction;
-- name: w20
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '69 seconds', '67 seconds'), auction;
-- name: w21
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '140 seconds', '70 seconds'), auction;
-- name: w22
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '220 seconds', '73 seconds'), auction;
-- name: w23
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '306 seconds', '76 seconds'), auction;
-- name: w24
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '79 seconds', '79 seconds'), auction;
-- name: w25
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '165 seconds', '82 seconds'), auction;
-- name: w26
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '257 seconds', '85 seconds'), auction;
-- name: w27
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '352 seconds', '88 seconds'), auction;
-- name: w28
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '92 seconds', '91 seconds'), auction;
-- name: w29
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '190 seconds', '94 seconds'), auction;
-- name: w30
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '291 seconds', '97 seconds'), auction;
-- name: w31
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '401 seconds', '100 seconds'), auction;
-- name: w32
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '105 seconds', '103 seconds'), auction;
-- name: w33
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '212 seconds', '106 seconds'), auction;
-- name: w34
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '328 seconds', '109 seconds'), auction;
-- name: w35
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '450 seconds', '112 seconds'), auction;
-- name: w36
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '115 seconds', '115 seconds'), auction;
-- name: w37
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '237 seconds', '118 seconds'), auction;
-- name: w38
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '365 seconds', '121 seconds'), auction;
-- name: w39
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '496 seconds', '124 seconds'), auction;
-- name: w40
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '128 seconds', '127 seconds'), auction;
