-- A table in memory with an index that is filled at random, then looked up at random and summed up.
CREATE TABLE account(id INTEGER PRIMARY KEY, owner TEXT, note TEXT, balance INTEGER);
CREATE INDEX by_owner ON account(owner);
WITH RECURSIVE number(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM number WHERE n < 1000000)
INSERT INTO account
SELECT n, printf('owner-%d', n * 7919 % 1000003), printf('opened in %d at branch %d, not used since', 1950 + n % 75, n % 613),
    (n * 104729) % 10007 FROM number;
UPDATE account SET balance = balance + 1 WHERE id % 5 = 0;
SELECT count(*), sum(balance), sum(length(note)) FROM account;
WITH RECURSIVE number(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM number WHERE n < 100000)
SELECT sum((SELECT sum(balance) FROM account WHERE owner = printf('owner-%d', n * 31337 % 1000003))) FROM number;
