// Command linearizability checks recorded histories with Porcupine: each group of keys is one object, whose operations
// read keys, or write keys whose versions are as expected, all or none.
//
// Standard input: one operation a line, as JSON (operation). Standard output: one line for each group, "NAME ok",
// "NAME illegal" or "NAME undecided" (not within the time that the first argument gives, in seconds for each group).
//
// A write without an answer is never over: it may take effect at any time after its beginning, or not at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

// entry is the version and the value of a key. Of a key that has no value both are empty.
type entry struct {
	Version string `json:"version"`
	Value   string `json:"value"`
}

// unlearned is the version that a write gave whose answer nobody had; a later read tells it. Nobody can have expected
// it before, so that a write with an expectation does not match.
const unlearned = "?"

// anything is the expectation of a write that has none.
const anything = "*"

type change struct {
	Expected string `json:"expected"`
	// Version is empty when the answer did not tell it.
	Version string `json:"version"`
	Value   string `json:"value"`
}

type operation struct {
	Group  string `json:"group"`
	Client int    `json:"client"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
	// Outcome: "read", "written", "refused" (an expectation was not met), "none" (nothing was done, whatever the state),
	// "unknown".
	Outcome string            `json:"outcome"`
	Reads   map[string]entry  `json:"reads"`
	Writes  map[string]change `json:"writes"`
}

type state map[string]entry

func (s state) matches(writes map[string]change) bool {
	for key, one := range writes {
		if one.Expected != anything && (s[key].Version == unlearned || s[key].Version != one.Expected) {
			return false
		}
	}
	return true
}

func (s state) write(writes map[string]change) state {
	next := maps.Clone(s)
	for key, one := range writes {
		version := one.Version
		if version == "" && one.Value != "" {
			version = unlearned
		}
		if one.Value == "" {
			delete(next, key)
		} else {
			next[key] = entry{version, one.Value}
		}
	}
	return next
}

// read tells whether what was read is so, and learns versions.
func (s state) read(reads map[string]entry) (bool, state) {
	next := s
	for key, seen := range reads {
		now := s[key]
		if now.Value != seen.Value {
			return false, s
		}
		if now.Version == seen.Version {
			continue
		}
		if now.Version != unlearned {
			return false, s
		}
		next = maps.Clone(next)
		next[key] = seen
	}
	return true, next
}

func step(before, input, _ any) (bool, any) {
	s, one := before.(state), input.(operation)
	switch one.Outcome {
	case "read":
		return s.read(one.Reads)
	case "written":
		if !s.matches(one.Writes) {
			return false, s
		}
		return true, s.write(one.Writes)
	case "refused":
		if s.matches(one.Writes) {
			return false, s
		}
		return s.read(one.Reads)
	case "unknown":
		if s.matches(one.Writes) {
			return true, s.write(one.Writes)
		}
	}
	return true, s
}

var model = porcupine.Model{
	Init:  func() any { return state{} },
	Step:  step,
	Equal: func(a, b any) bool { return maps.Equal(a.(state), b.(state)) },
}

func main() {
	seconds := 60
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	groups := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		end := one.Return
		if one.Outcome == "unknown" {
			end = math.MaxInt64
		}
		groups[one.Group] = append(groups[one.Group], porcupine.Operation{
			ClientId: one.Client, Input: one, Call: one.Call, Return: end,
		})
	}
	names := slices.Sorted(maps.Keys(groups))
	for _, name := range names {
		result := porcupine.CheckOperationsTimeout(model, groups[name], time.Duration(seconds)*time.Second)
		words := map[porcupine.CheckResult]string{porcupine.Ok: "ok", porcupine.Illegal: "illegal"}
		word := words[result]
		if word == "" {
			word = "undecided"
		}
		fmt.Println(name, word)
	}
}
