package sql

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// table is what a statement shows.
type table struct {
	columns []string
	rows    [][]any
}

const (
	utf8Charset   = 45 // utf8mb4_general_ci
	binaryCharset = 63
)

// result makes the answer of a table, in the text protocol or the binary one.
func (t table) result(binaryProtocol bool) *mysql.Result {
	rs := mysql.NewResultset(len(t.columns))
	types := make([]byte, len(t.columns))
	for i, c := range t.columns {
		types[i] = t.typeOf(i)
		f := &mysql.Field{Name: []byte(c), Type: types[i], Charset: utf8Charset, ColumnLength: 1024}
		if types[i] != mysql.MYSQL_TYPE_VAR_STRING {
			f.Charset, f.Flag = binaryCharset, mysql.BINARY_FLAG
		}
		rs.Fields[i] = f
	}
	for _, row := range t.rows {
		if binaryProtocol {
			rs.RowDatas = append(rs.RowDatas, binaryRow(types, row))
		} else {
			rs.RowDatas = append(rs.RowDatas, textRow(row))
		}
	}
	return mysql.NewResult(rs)
}

// typeOf is the type of a column: that of all its values, or a text.
func (t table) typeOf(i int) byte {
	found := byte(mysql.MYSQL_TYPE_NULL)
	for _, row := range t.rows {
		k := byte(mysql.MYSQL_TYPE_VAR_STRING)
		switch row[i].(type) {
		case nil:
			continue
		case int64:
			k = mysql.MYSQL_TYPE_LONGLONG
		case float64:
			k = mysql.MYSQL_TYPE_DOUBLE
		}
		switch {
		case found == mysql.MYSQL_TYPE_NULL || found == k:
			found = k
		case k != mysql.MYSQL_TYPE_VAR_STRING && found != mysql.MYSQL_TYPE_VAR_STRING:
			found = mysql.MYSQL_TYPE_DOUBLE
		default:
			return mysql.MYSQL_TYPE_VAR_STRING
		}
	}
	if found == mysql.MYSQL_TYPE_NULL {
		return mysql.MYSQL_TYPE_VAR_STRING
	}
	return found
}

func textOf(v any) []byte {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(nil, v, 10)
	case float64:
		return strconv.AppendFloat(nil, v, 'g', -1, 64)
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return fmt.Append(nil, v)
}

func textRow(row []any) (data []byte) {
	for _, v := range row {
		if v == nil {
			data = append(data, 0xfb)
			continue
		}
		data = append(data, mysql.PutLengthEncodedString(textOf(v))...)
	}
	return data
}

func binaryRow(types []byte, row []any) []byte {
	nulls := make([]byte, (len(row)+7+2)/8)
	data := append([]byte{0}, nulls...)
	for i, v := range row {
		if v == nil {
			data[1+(i+2)/8] |= 1 << ((i + 2) % 8)
			continue
		}
		switch types[i] {
		case mysql.MYSQL_TYPE_LONGLONG:
			data = binary.LittleEndian.AppendUint64(data, uint64(v.(int64)))
		case mysql.MYSQL_TYPE_DOUBLE:
			f, ok := v.(float64)
			if n, isInt := v.(int64); !ok && isInt {
				f = float64(n)
			}
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(f))
		default:
			data = append(data, mysql.PutLengthEncodedString(textOf(v))...)
		}
	}
	return data
}
