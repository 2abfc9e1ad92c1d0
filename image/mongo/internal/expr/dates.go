package expr

import (
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

var dates = map[string]operator{
	"$year":        part(func(t time.Time) int { return t.Year() }),
	"$month":       part(func(t time.Time) int { return int(t.Month()) }),
	"$dayOfMonth":  part(func(t time.Time) int { return t.Day() }),
	"$dayOfWeek":   part(func(t time.Time) int { return int(t.Weekday()) + 1 }),
	"$dayOfYear":   part(func(t time.Time) int { return t.YearDay() }),
	"$hour":        part(func(t time.Time) int { return t.Hour() }),
	"$minute":      part(func(t time.Time) int { return t.Minute() }),
	"$second":      part(func(t time.Time) int { return t.Second() }),
	"$millisecond": part(func(t time.Time) int { return t.Nanosecond() / 1e6 }),
}

// instant reads a date, or the date in an object ID or a timestamp.
func instant(v value.Value) (time.Time, error) {
	switch v.Type {
	case bsoncore.TypeDateTime:
		return time.UnixMilli(v.DateTime()).UTC(), nil
	case bsoncore.TypeTimestamp:
		t, _ := v.Timestamp()
		return time.Unix(int64(t), 0).UTC(), nil
	case bsoncore.TypeObjectID:
		id := v.ObjectID()
		seconds := int64(id[0])<<24 | int64(id[1])<<16 | int64(id[2])<<8 | int64(id[3])
		return time.Unix(seconds, 0).UTC(), nil
	}
	return time.Time{}, code.Errorf(16006, "can't convert from BSON type %s to Date", value.TypeName(v))
}

func part(f func(time.Time) int) operator {
	return operator{1, 1, func(_ string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		t, err := instant(args[0])
		return value.Int32(int32(f(t))), err
	}}
}

func dateToString(args map[string]value.Value) (value.Value, error) {
	if nothing(args["date"]) {
		if v, ok := args["onNull"]; ok {
			return v, nil
		}
		return value.Null(), nil
	}
	t, err := instant(args["date"])
	if err != nil {
		return value.Value{}, err
	}
	format := "%Y-%m-%dT%H:%M:%S.%LZ"
	if s, ok := value.Str(args["format"]); ok {
		format = s
	}
	year, week := t.ISOWeek()
	return value.String(strings.NewReplacer(
		"%%", "%", "%Y", fmt.Sprintf("%04d", t.Year()), "%m", fmt.Sprintf("%02d", int(t.Month())),
		"%d", fmt.Sprintf("%02d", t.Day()), "%H", fmt.Sprintf("%02d", t.Hour()),
		"%M", fmt.Sprintf("%02d", t.Minute()), "%S", fmt.Sprintf("%02d", t.Second()),
		"%L", fmt.Sprintf("%03d", t.Nanosecond()/1e6), "%j", fmt.Sprintf("%03d", t.YearDay()),
		"%w", fmt.Sprint(int(t.Weekday())+1), "%u", fmt.Sprint((int(t.Weekday())+6)%7+1),
		"%G", fmt.Sprintf("%04d", year), "%V", fmt.Sprintf("%02d", week), "%z", "+0000", "%Z", "0",
	).Replace(format)), nil
}
