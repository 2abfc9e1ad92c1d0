// Package export writes runs in the formats of others: spans of OpenTelemetry's conventions for generative AI, ATIF
// trajectories, AIOpsLab's session files, and tables as CSV or Parquet. All of it is a function of the records:
//
//	w := export.OTLP(file)
//	for _, name := range files {
//		run, err := export.Read(name)
//		if err != nil {
//			return err
//		}
//		if err := w.Write(ctx, run); err != nil {
//			return err
//		}
//	}
//	return w.Close()
//
// One run is in memory at a time, however many there are. What a run is called in another system is drawn from its id,
// so that exporting it again makes the same spans and not new ones.
package export

import "context"

// Writer takes runs, one after the other. What it writes is whole once it is closed without an error.
type Writer interface {
	Write(ctx context.Context, r *Run) error
	Close() error
}
