package rows

import "fmt"

// The metrics of the benchmarks.
const (
	Time   = "ns/op"
	Allocs = "allocs"
	Bytes  = "bytes"
	Peak   = "peak-B"
	Live   = "live-B"
)

// All returns every row of the table.
func All() []Row {
	var all []Row
	for _, family := range [][]Row{wireRows(), informerRows(), storeRows(), fifoRows(), queueRows(), pagerRows()} {
		all = append(all, family...)
	}
	return append(all, otherRows()...)
}

func storeRows() []Row {
	return []Row{
		{ID: "S1", What: "add, 100k pods, 7 index values", Bench: "S1_Add", Metric: Time, Measure: Faster, Must: 1.2, Aim: 1.6},
		{ID: "S1 allocs", What: "allocations of that", Bench: "S1_Add", Metric: Allocs, Measure: AtMost, Must: 4, Aim: 4},
		{ID: "S2", What: "structures held per object", Bench: "S2_Held", Metric: "held-B/object", Measure: Smaller, Must: 0.6, Aim: 0.45},
		{ID: "S3", What: "update, same index values", Bench: "S3_UpdateSame", Metric: Time, Measure: Faster, Must: 3, Aim: 4.5},
		{ID: "S3 allocs", What: "allocations of that", Bench: "S3_UpdateSame", Metric: Allocs, Measure: AtMost},
		{ID: "S4", What: "update, 2 of 7 values move", Bench: "S4_UpdateMove", Metric: Time, Measure: Faster, Must: 2, Aim: 2.8},
		{ID: "S4 allocs", What: "allocations of that", Bench: "S4_UpdateMove", Metric: Allocs, Measure: AtMost, Must: 1, Aim: 1},
		{ID: "S5", What: "delete", Bench: "S5_Delete", Metric: Time, Measure: Faster, Must: 1, Aim: 1.8},
		{ID: "S5 allocs", What: "allocations of that", Bench: "S5_Delete", Metric: Allocs, Measure: AtMost, Must: 0.1, Aim: 0.1},
		{ID: "S6 10k", What: "get, alone, of 10k", Bench: "S6_Get/n=10000", Metric: Time, Measure: Faster, Must: 0.7, Aim: 1},
		{ID: "S6 100k", What: "get, alone, of 100k", Bench: "S6_Get/n=100000", Metric: Time, Measure: Faster, Must: 0.7, Aim: 1},
		{ID: "S7 reads", What: "gets beside a full-speed writer, 4 readers, a second", Bench: "S7_Beside", Metric: "reads/s", Measure: More, Must: 3, Aim: 8},
		{ID: "S7 writes", What: "updates of that writer, a second", Bench: "S7_Beside", Metric: "writes/s", Measure: More, Must: 2, Aim: 5},
		{ID: "S8 1", What: "by index, 1 match", Bench: "S8_ByIndex/matches=1", Metric: Time, Measure: Faster, Must: 1.6, Aim: 2},
		{ID: "S8 100", What: "by index, 100 matches", Bench: "S8_ByIndex/matches=100", Metric: Time, Measure: Faster, Must: 4, Aim: 6},
		{ID: "S8 10k", What: "by index, 10k matches", Bench: "S8_ByIndex/matches=10000", Metric: Time, Measure: Faster, Must: 5, Aim: 11},
		{ID: "S9", What: "list 100k", Bench: "S9_List/list", Metric: Time, Measure: Faster, Must: 3, Aim: 5},
		{ID: "S9 bytes", What: "bytes of that", Bench: "S9_List/list", Metric: Bytes, Measure: Smaller, Must: 0.5, Aim: 0.5},
		{ID: "S9 snapshot", What: "snapshot of 100k, ns", Bench: "S9_List/snapshot", Metric: Time, Measure: AtMost, Must: 1000, Aim: 200},
		{ID: "S9 iterate", What: "bytes of an iteration", Bench: "S9_List/iterate", Metric: Bytes, Measure: AtMost, Must: 256, Aim: 128},
		{ID: "S10", What: "update p50 beside a continuous list, of its quiet p50", Bench: "S10_BesideList", Metric: "p50-ratio", Measure: AtMost, Must: 2, Aim: 1.1},
	}
}

func fifoRows() []Row {
	return []Row{
		{ID: "F1", What: "hop between goroutines, against RealFIFO", Bench: "F1_Hop/RealFIFO", Metric: Time, Measure: Faster, Must: 3, Aim: 8},
		{ID: "F1 DeltaFIFO", What: "the same, against DeltaFIFO", Bench: "F1_Hop/DeltaFIFO", Metric: Time, Measure: Faster, Must: 3, Aim: 8},
		{ID: "F1 allocs", What: "allocations of a hop", Bench: "F1_Hop/RealFIFO", Metric: Allocs, Measure: AtMost},
		{ID: "F2", What: "backlog of one hot key, 1000 events", Bench: "F2_HotKey", Metric: Time, Measure: Faster, Must: 50, Aim: 300},
		{ID: "F2 bytes", What: "bytes of an event", Bench: "F2_HotKey", Metric: Bytes, Measure: AtMost, Must: 64, Aim: 64},
		{ID: "F3", What: "replace 100k over known, unchanged, per object", Bench: "F3_Replace/unchanged/RealFIFO", Metric: Time, Measure: Faster, Must: 2, Aim: 4},
		{ID: "F3 DeltaFIFO", What: "the same, against DeltaFIFO", Bench: "F3_Replace/unchanged/DeltaFIFO", Metric: Time, Measure: Faster, Must: 2, Aim: 4},
		{ID: "F3 half", What: "the same, half of them changed", Bench: "F3_Replace/half/RealFIFO", Metric: Time, Measure: Faster, Must: 2, Aim: 4},
		{ID: "F3 allocs", What: "allocations of that", Bench: "F3_Replace/half/RealFIFO", Metric: Allocs, Measure: AtMost, Must: 1, Aim: 1},
	}
}

func queueRows() []Row {
	return []Row{
		{ID: "Q1", What: "add, get, done on one goroutine", Bench: "Q1_AddGetDone", Metric: Time, Measure: Faster, Must: 1.6, Aim: 1.8},
		{ID: "Q1 allocs", What: "allocations of that", Bench: "Q1_AddGetDone", Metric: Allocs, Measure: AtMost},
		{ID: "Q2", What: "1 producer, 1 consumer", Bench: "Q2_Pipe", Metric: Time, Measure: Faster, Must: 1.5, Aim: 1.7},
		{ID: "Q3", What: "4 producers, 4 consumers", Bench: "Q3_Pipes", Metric: Time, Measure: Faster, Must: 1.1, Aim: 1.3},
		{ID: "Q4 cycle", What: "priorities: add, get, done", Bench: "Q4_Priority/cycle", Metric: Time, Measure: Faster, Must: 8, Aim: 13},
		{ID: "Q4 1x1", What: "priorities: 1 producer, 1 consumer", Bench: "Q4_Priority/1x1", Metric: Time, Measure: Faster, Must: 5, Aim: 8},
		{ID: "Q4 4x4", What: "priorities: 4 producers, 4 consumers", Bench: "Q4_Priority/4x4", Metric: Time, Measure: Faster, Must: 3, Aim: 3.5},
		{ID: "Q4 allocs", What: "allocations of a cycle", Bench: "Q4_Priority/cycle", Metric: Allocs, Measure: AtMost},
		{ID: "Q5", What: "delayed add, 100k pending", Bench: "Q5_AddAfter", Metric: Time, Measure: Faster, Must: 1.2, Aim: 1.4},
		{ID: "Q5 bytes", What: "bytes held per item", Bench: "Q5_AddAfter", Metric: "held-B/item", Measure: Smaller, Must: 0.8, Aim: 0.8},
		{ID: "Q5 allocs", What: "allocations of that", Bench: "Q5_AddAfter", Metric: Allocs, Measure: AtMost},
		{ID: "Q6", What: "rate-limited add and forget", Bench: "Q6_Limited", Metric: Time, Measure: Faster, Must: 1.6, Aim: 1.9},
		{ID: "Q7 1", What: "exponential limiter, 100k keys", Bench: "Q7_Exponential/goroutines=1", Metric: Time, Measure: Faster, Must: 1.5, Aim: 2.2},
		{ID: "Q7 4", What: "the same, 4 goroutines", Bench: "Q7_Exponential/goroutines=4", Metric: Time, Measure: Faster, Must: 1.5, Aim: 1.8},
	}
}

func pagerRows() []Row {
	return []Row{
		{ID: "P1", What: "pager to kept objects, per object", Bench: "P1_PagerKept", Metric: Time, Measure: Faster, Must: 10, Aim: 10},
		{ID: "P1 bytes", What: "bytes of that", Bench: "P1_PagerKept", Metric: Bytes, Measure: Smaller, Must: 0.05, Aim: 0.05},
		{ID: "P2", What: "iterating pages, per object", Bench: "P2_PagerIterate", Metric: Time, Measure: Faster, Must: 4, Aim: 4},
		{ID: "P2 allocs", What: "allocations of that", Bench: "P2_PagerIterate", Metric: Allocs, Measure: AtMost},
	}
}

func informerRows() []Row {
	var all []Row
	must, aim := []float64{4, 8, 16}, []float64{9, 15, 32}
	for i, handlers := range []int{1, 4, 16} {
		bench := fmt.Sprintf("I1_I2_WatchEvents/handlers=%d", handlers)
		all = append(all, Row{ID: fmt.Sprint("I1 ", handlers), What: fmt.Sprintf("watch events to %d handlers, ns an event", handlers),
			Bench: bench, Metric: Time, Measure: Faster, Must: must[i], Aim: aim[i]})
		all = append(all, Row{ID: fmt.Sprint("I2 allocs ", handlers), What: "allocations per event",
			Bench: bench, Metric: Allocs, Measure: AtMost, Must: 1.5, Aim: 1})
		all = append(all, Row{ID: fmt.Sprint("I2 bytes ", handlers), What: "bytes per event",
			Bench: bench, Metric: Bytes, Measure: Smaller, Must: 0.25, Aim: 0.25})
	}
	return append(all,
		Row{ID: "I3", What: "in-memory sync of 100k", Bench: "I3_I4_Sync", Metric: "sync-ms", Measure: Faster, Must: 2.5, Aim: 5},
		Row{ID: "I3 peak", What: "extra peak of that", Bench: "I3_I4_Sync", Metric: "sync-peak-MB", Measure: Smaller, Must: 0.26, Aim: 0.12},
		Row{ID: "I4", What: "relist of 100k unchanged", Bench: "I3_I4_Sync", Metric: "relist-ms", Measure: Faster, Must: 5, Aim: 10},
		Row{ID: "I4 peak", What: "extra peak of that", Bench: "I3_I4_Sync", Metric: "relist-peak-MB", Measure: Smaller, Must: 0.1, Aim: 0.05},
		Row{ID: "I5", What: "one stuck handler: bytes held per further event", Bench: "I5_Stuck", Metric: "held-B/event", Measure: AtMost, Must: 4, Aim: 1},
	)
}

func wireRows() []Row {
	modes := []struct {
		id, what, bench string
		time, timeAim   float64
		peak, peakAim   float64
	}{
		{"W1", "JSON list to synced", "W1_W5_JSONList", 2, 2.5, 0.5, 0.43},
		{"W2", "JSON watch-list", "W2_W5_JSONStream", 4, 6, 0.85, 0.75},
		{"W3", "protobuf list", "W3_W5_ProtoList", 1.3, 1.5, 0.7, 0.6},
		{"W4", "protobuf watch-list", "W4_W5_ProtoStream", 1.5, 1.7, 0.85, 0.75},
	}
	var all, w5 []Row
	for _, m := range modes {
		all = append(all,
			Row{ID: m.id, What: m.what, Bench: m.bench, Metric: "sync-ms", Measure: Faster, Must: m.time, Aim: m.timeAim},
			Row{ID: m.id + " peak", What: "peak of that", Bench: m.bench, Metric: "peak-MB", Measure: Smaller, Must: m.peak, Aim: m.peakAim})
		w5 = append(w5, Row{ID: "W5 " + m.id, What: "peak / live, " + m.what, Bench: m.bench, Metric: "peak/live", Measure: AtMost, Must: 1.2, Aim: 1.1})
	}
	return append(append(all, w5...),
		Row{ID: "W6 shared", What: "live heap, strings shared", Bench: "W6_Smaller/shared", Metric: "live-MB", Measure: Smaller, Must: 0.9, Aim: 0.85},
		Row{ID: "W6 leave out", What: "live heap, no managedFields", Bench: "W6_Smaller/leaveout", Metric: "live-MB", Measure: Smaller, Must: 0.8, Aim: 0.7})
}

// otherRows are the second part: the important rows with other fixtures.
func otherRows() []Row {
	models := []struct{ id, bench string }{
		{"W1", "OW1_JSONList"}, {"W1 peak", "OW1_JSONList"}, {"W2", "OW2_JSONStream"}, {"W2 peak", "OW2_JSONStream"},
		{"W3", "OW3_ProtoList"}, {"W3 peak", "OW3_ProtoList"}, {"W4", "OW4_ProtoStream"}, {"W4 peak", "OW4_ProtoStream"},
		{"I1 4", "OI1_WatchEvents"}, {"I3", "OI3_Sync"}, {"I3 peak", "OI3_Sync"},
		{"S1", "OS1_Add"}, {"S3", "OS3_UpdateSame"}, {"S3 allocs", "OS3_UpdateSame"}, {"S6 10k", "OS6_Get"},
		{"S8 100", "OS8_ByIndex"}, {"F1", "OF1_Hop"},
	}
	first := make(map[string]Row)
	for _, family := range [][]Row{wireRows(), informerRows(), storeRows(), fifoRows()} {
		for _, row := range family {
			first[row.ID] = row
		}
	}
	var all []Row
	for _, model := range models {
		for _, kind := range []string{"pods", "configmaps", "nodes", "custom"} {
			if kind == "custom" && (model.id[:2] == "W3" || model.id[:2] == "W4") {
				continue // there is no protobuf of custom resources
			}
			all = append(all, first[model.id].other(model.bench, kind))
		}
	}
	return all
}

// other returns r for another fixture, with half of the bar.
func (r Row) other(bench, kind string) Row {
	r.What = "as " + r.ID + ", " + kind
	r.ID = "O" + r.ID + " " + kind
	r.Bench = bench + "/" + kind
	r.Other = true
	switch r.Measure {
	case Faster, More:
		r.Must, r.Aim = r.Must/2, r.Aim/2
	case Smaller:
		r.Must, r.Aim = (1+r.Must)/2, (1+r.Aim)/2
	case AtMost:
		r.Must, r.Aim = 2*r.Must, 2*r.Aim
	}
	return r
}
