package sched

import "testing"

// TestWhole: a step ends before a part that runs as a whole, or behind one that begins it, whatever the chunk.
func TestWhole(t *testing.T) {
	q := &Seq{Whole: [][2]int{{10, 26}, {26, 30}, {40, 41}}}
	for _, tc := range []struct{ from, end, want int }{
		{0, 5, 5}, {0, 10, 10}, {0, 11, 10}, {0, 25, 10}, {0, 26, 26}, {0, 28, 26}, {10, 12, 26}, {10, 27, 26}, {15, 16, 26}, {26, 27, 30}, {30, 40, 40},
		{30, 41, 41}, {30, 60, 60},
	} {
		q.Table.Len = tc.from
		if got := q.whole(tc.end); got != tc.want {
			t.Errorf("from %d to %d: ends at %d, want %d", tc.from, tc.end, got, tc.want)
		}
	}
}
