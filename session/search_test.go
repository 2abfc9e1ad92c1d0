package session

import (
	"encoding/json"
	"testing"

	"github.com/aiopslab/aiopslab/record"
)

// A run that counts does not if it is one of a search, and tells what it would be; one that does not stays what it is.
func TestSearched(t *testing.T) {
	for _, kind := range []string{record.SnapshotEvent, record.RestoreEvent} {
		for want, open := range map[Class]func() *record.Record{
			Solved: func() *record.Record { return finished(t, located) },
			AgentFailed: func() *record.Record {
				rec := finished(t, located)
				change(rec, record.SubmissionEvent, replaced(`"answer":`, `"riddle":`))
				return rec
			},
			Infra: func() *record.Record {
				rec := finished(t, located)
				change(rec, record.SubmissionEvent, func(json.RawMessage) json.RawMessage {
					return json.RawMessage(`{"submitted":false,"class":"infra","reason":"no way"}`)
				})
				return rec
			},
		} {
			rec := open()
			alone, err := Grade(rec)
			if err != nil || alone.Class != want || alone.Results["search"] != nil {
				t.Fatalf("%s: %+v, %v", want, alone, err)
			}
			rec.Events = append([]record.Event{{Kind: kind, Data: []byte(`{"steps":1}`)}}, rec.Events...)
			v, err := Grade(rec)
			if err != nil {
				t.Fatal(err)
			}
			if want == Infra {
				if v.Class != Infra || v.Why != alone.Why {
					t.Errorf("%+v", v)
				}
				continue
			}
			if v.Class != Searched || v.Results["search"] != string(want) || v.Why != "in a search: "+alone.Why {
				t.Errorf("%s: %+v", want, v)
			}
		}
	}
}
