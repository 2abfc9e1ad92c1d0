// Package parquet exports telemetry in the format of Apache Parquet, compressed, for tools that read much of it:
//
//	dir, err := observer.Export(ctx, window, ".", parquet.Format)
//
// It is apart from package observe so that only programs that want it link its codecs.
package parquet

import (
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/aiopslab/aiopslab/observe"
)

// Format has the columns that [observe.CSV] has, with types.
var Format = observe.Format{Ext: "parquet", New: func(w io.Writer, row any) observe.Table {
	return parquet.NewWriter(w, parquet.SchemaOf(row), parquet.Compression(&parquet.Zstd))
}}
