module github.com/rubenv/sql-migrate

go 1.26
