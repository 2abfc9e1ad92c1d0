module github.com/extism/go-sdk

go 1.26
