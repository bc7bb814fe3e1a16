package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestBench(t *testing.T) {
	for _, args := range [][]string{
		{"--bits", "4", "--threads", "2", "--shape", "tiny"},
		{"--bits", "16", "--precision", "exact", "--threads", "1", "--shape", "tiny"},
		{"--bits", "4", "--shape", "tiny-hybrid"},
	} {
		var out, errs bytes.Buffer
		cmd := newBenchCmd()
		cmd.SetArgs(append(args, "--prompt", "70", "--tokens", "2", "--repeats", "1", "--json"))
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		var r benchResult
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if r.Prefill <= 0 || r.Decode <= 0 || r.Bandwidth <= 0 || r.Share <= 0 || r.BytesPerToken < 9<<20 {
			t.Errorf("%v: %+v", args, r)
		}
		if !strings.Contains(errs.String(), "repeat 1 of 1") {
			t.Errorf("progress: %s", errs.String())
		}
	}
}

func TestBenchBatch(t *testing.T) {
	var out, errs bytes.Buffer
	cmd := newBenchCmd()
	cmd.SetArgs([]string{"--batch", "3", "--kv-type", "q8", "--shape", "tiny", "--prompt", "20", "--tokens", "3", "--repeats", "2", "--threads", "1", "--json"})
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var r batchResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if r.Batch != 3 || r.KV != "q8" || r.Single <= 0 || r.Together <= 0 || r.RatioMin > r.Ratio || r.Ratio > r.RatioMax {
		t.Errorf("%+v", r)
	}
}

func TestBenchFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--shape", "giant"}, {"--bits", "7"}, {"--group", "48"}, {"--precision", "best"}, {"--tokens", "0"}, {"--threads", "-1"}, {"--batch", "-1"}, {"--kv-type", "q2"},
		{"model"},
	} {
		cmd := newBenchCmd()
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); err == nil {
			t.Errorf("%v ran", args)
		}
	}
}
