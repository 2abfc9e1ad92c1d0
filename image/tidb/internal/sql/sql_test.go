package sql

import (
	"strings"
	"testing"
)

// here is a session of nobody in a database.
type here struct{}

func (here) database() string { return "bank" }

func (here) value(function string) (any, bool) {
	v, ok := map[string]any{"now": "2026-01-02 03:04:05", "database": "bank", "connection_id": int64(7)}[function]
	return v, ok
}

func (here) setting(name string) (any, bool) { return "8.0", name == "@@version" }

func TestTranslate(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT * FROM accounts":                    `SELECT * FROM "bank.accounts" AS "accounts"`,
		"select a.id from accounts a where a.x='y'": `select "a"."id" from "bank.accounts" AS "a" where "a"."x" = 'y'`,
		"SELECT `id` FROM other.t AS x, u WHERE (x.id = u.id)": `SELECT "id" FROM "other.t" AS "x", "bank.u" AS "u" ` +
			`WHERE ("x"."id" = "u"."id")`,
		"SELECT 'it\\'s', \"two\" FROM DUAL":               `SELECT 'it''s', 'two'`,
		"SELECT NOW(), DATABASE()":                         `SELECT '2026-01-02 03:04:05' AS "NOW()", 'bank' AS "DATABASE()"`,
		"SELECT @@version":                                 `SELECT '8.0' AS "@@version"`,
		"SELECT IF(a <=> NULL, 1, 2) FROM t":               `SELECT iif(a IS NULL, 1, 2) FROM "bank.t" AS "t"`,
		"SELECT x FROM t ORDER BY x LIMIT 2 FOR UPDATE":    `SELECT x FROM "bank.t" AS "t" ORDER BY x LIMIT 2`,
		"INSERT IGNORE INTO t (a) VALUE (?)":               `INSERT OR IGNORE INTO "bank.t" AS "t" (a) VALUES (?)`,
		"REPLACE t VALUES (1, NOW())":                      `INSERT OR REPLACE INTO "bank.t" AS "t" VALUES (1, '2026-01-02 03:04:05')`,
		"UPDATE t SET a = a + 1 WHERE t.id IN (1, 2)":      `UPDATE "bank.t" AS "t" SET a = a + 1 WHERE "t"."id" IN(1, 2)`,
		"DELETE FROM t WHERE a = 1 || b = 2 -- why":        `DELETE FROM "bank.t" AS "t" WHERE a = 1 OR b = 2`,
		"SELECT (SELECT MAX(b) FROM u WHERE u.t = t.id) x": `SELECT (SELECT MAX(b) FROM "bank.u" AS "u" WHERE "u"."t" = "t"."id") x`,
		"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = a + VALUES(a)": `INSERT INTO "bank.t" AS "t" (a) ` +
			`VALUES (1) ON CONFLICT DO UPDATE SET a = a + excluded."a"`,
		"SELECT * FROM a JOIN b USING (id) LEFT JOIN c.d ON d.id = a.id": `SELECT * FROM "bank.a" AS "a" ` +
			`JOIN "bank.b" AS "b" USING (id) LEFT JOIN "c.d" AS "d" ON "d"."id" = "a"."id"`,
	} {
		list, err := lex(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := dml(here{}, list)
		if err != nil || got.sql != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", query, got.sql, err, want)
		}
	}
}

func TestCreateTable(t *testing.T) {
	for query, want := range map[string]string{
		"t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, n VARCHAR(10) DEFAULT 'x', PRIMARY KEY (id)) ENGINE=InnoDB": `CREATE TABLE "bank.t" ` +
			`("id" INTEGER PRIMARY KEY AUTOINCREMENT, "n" VARCHAR(10) DEFAULT 'x')`,
		"t (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB AUTO_INCREMENT = 101 COMMENT 'x'": `CREATE TABLE "bank.t" ` +
			`("id" INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO sqlite_sequence (name, seq) SELECT 'bank.t', 100 ` +
			`WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'bank.t')`,
		"IF NOT EXISTS t (a INT, b INT, PRIMARY KEY (a, b), UNIQUE KEY u (b), KEY (a))": `CREATE TABLE IF NOT EXISTS "bank.t" ` +
			`("a" INT, "b" INT, PRIMARY KEY ("a", "b")); CREATE UNIQUE INDEX IF NOT EXISTS "bank.t.u" ON "bank.t" ("b"); ` +
			`CREATE INDEX IF NOT EXISTS "bank.t.a" ON "bank.t" ("a")`,
		"t (a INT PRIMARY KEY, b INT REFERENCES u (id) ON DELETE CASCADE, CHECK (a > 0))": `CREATE TABLE "bank.t" ` +
			`("a" INT NOT NULL, "b" INT REFERENCES "bank.u" ("id") ON DELETE CASCADE, PRIMARY KEY ("a"), CHECK (a > 0))`,
	} {
		list, err := lex(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := createTable("bank", list)
		if all := strings.Join(got, "; "); err != nil || all != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", query, all, err, want)
		}
	}
}

// Whatever a client sends, it is translated or refused.
func FuzzTranslate(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM t", "INSERT INTO t VALUES (?, 'a\\'b') ON DUPLICATE KEY UPDATE a = VALUES(a)", "UPDATE t SET", "SELECT",
		"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, x ENUM('a'), KEY (x(3)))", "ALTER TABLE t ADD COLUMN x INT", "(((",
		"SELECT RAND(), NOW(6), @@version", "/* x */ # y\n--", "DELETE t FROM u", "FROM", "SELECT a.b.c.*", "`", "REPLACE",
	} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		list, err := lex(s)
		if err != nil || len(list) == 0 {
			return
		}
		_, _ = dml(here{}, list)
		_, _ = createTable("bank", list)
		_, _ = alterTable("bank", list)
		r := &reader{list: list}
		_, _ = dropTables(r, "bank")
		x := &session{vars: map[string]string{}, srv: &Server{}}
		_, _ = x.users(&reader{list: append([]token{{kind: word, text: "DROP"}, {kind: word, text: "USER"}}, list...), pos: 2})
	})
}

// The numbers of MySQL's errors are found in what SQLite says.
func TestDatabaseError(t *testing.T) {
	for said, want := range map[string]string{
		"constraint failed: UNIQUE constraint failed: bank.t.a, bank.t.b (2067)": "ERROR 1062 (23000): Duplicate entry for key 't.a'",
		"SQL logic error: no such table: bank.t (1)":                             "ERROR 1146 (42S02): Table 'bank.t' doesn't exist",
		"SQL logic error: no such column: x (1)":                                 "ERROR 1054 (42S22): Unknown column 'x' in 'field list'",
		"SQL logic error: table t has no column named y (1)":                     "ERROR 1054 (42S22): Unknown column 'y' in 'field list'",
		"SQL logic error: near \"FROM\": syntax error (1)":                       "ERROR 1064",
		"something else": "ERROR 1105",
	} {
		if got := databaseError(said).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", said, got)
		}
	}
}
