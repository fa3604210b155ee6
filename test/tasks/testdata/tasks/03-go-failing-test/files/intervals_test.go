package intervals

import (
	"reflect"
	"testing"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct{ give, want []Span }{
		{nil, nil},
		{[]Span{{5, 6}, {1, 2}}, []Span{{1, 2}, {5, 6}}},
		{[]Span{{1, 4}, {4, 7}}, []Span{{1, 7}}},
		{[]Span{{1, 9}, {2, 3}, {8, 11}}, []Span{{1, 11}}},
		{[]Span{{1, 9}, {2, 3}}, []Span{{1, 9}}},
	} {
		if got := Merge(c.give); !reflect.DeepEqual(got, c.want) {
			t.Errorf("Merge(%v) = %v, want %v", c.give, got, c.want)
		}
	}
}
