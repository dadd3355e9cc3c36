package compute

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
)

// storedLaws are Laws as JSON.
type storedLaws struct {
	Clock   string               `json:"clock"`
	Refused string               `json:"refused,omitempty"`
	Doubt   string               `json:"doubt,omitempty"`
	Total   *timeLaw             `json:"total,omitempty"`
	Spread  []float64            `json:"spread,omitempty"`
	Sites   map[int32]storedSite `json:"sites,omitempty"` // by event
}

// storedSite is siteLaws as JSON.
type storedSite struct {
	Mean  *timeLaw           `json:"mean"`
	Slots []storedSlot       `json:"slots,omitempty"`
	Roles map[string]float64 `json:"roles,omitempty"`
	Grid  *pattern.Grid      `json:"grid,omitempty"`
	Noise *signature.Spread  `json:"noise,omitempty"`
	// Own is the noise around the mean of each rank, Shared how far ranks have the same.
	Own    *signature.Spread `json:"own_noise,omitempty"`
	Shared int64             `json:"shared_noise,omitempty"`
}

// storedSlot has the law of a slot, or its share of the site's mean, or both.
type storedSlot struct {
	Place slots.Place `json:"place"`
	Law   *timeLaw    `json:"law,omitempty"`
	Share *float64    `json:"share,omitempty"`
}

// storedTime is a timeLaw as JSON: its points, from which the curve is made again.
type storedTime struct {
	Points []regress.Point `json:"points"`
	Split  *storedSplit    `json:"split,omitempty"`
}

// storedSplit is a splitLaw as JSON.
type storedSplit struct {
	Instructions *timeLaw `json:"instructions"`
	Stall        *timeLaw `json:"stall"`
	CPI          float64  `json:"cpi"`
	CycleNs      float64  `json:"cycle_ns"`
}

// MarshalJSON writes the laws.
func (c *Laws) MarshalJSON() ([]byte, error) {
	s := storedLaws{Clock: c.clock, Refused: c.Refused, Doubt: c.Doubt, Total: c.total, Spread: c.spread,
		Sites: map[int32]storedSite{}}
	for event, x := range c.sites {
		s.Sites[event] = storedSite{x.mean, x.storedSlots(), x.roles, x.grid, x.noise, x.own, x.shared}
	}
	return json.Marshal(s)
}

// storedSlots returns the laws and shares of slots, in the order of their places.
func (s *siteLaws) storedSlots() (all []storedSlot) {
	places := map[slots.Place]bool{}
	for at := range s.slots {
		places[at] = true
	}
	for at := range s.shares {
		places[at] = true
	}
	for _, at := range slices.SortedFunc(maps.Keys(places),
		func(a, b slots.Place) int { return slices.Compare(a[:], b[:]) }) {
		x := storedSlot{Place: at, Law: s.slots[at]}
		if share, known := s.shares[at]; known {
			x.Share = &share
		}
		all = append(all, x)
	}
	return all
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Laws) UnmarshalJSON(text []byte) error {
	var s storedLaws
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*c = Laws{clock: s.Clock, Refused: s.Refused, Doubt: s.Doubt, total: s.Total, spread: s.Spread,
		sites: map[int32]*siteLaws{}}
	if (c.Refused == "" || c.Doubt != "") && c.total == nil {
		return errors.New("compute times without a law of all together")
	}
	for event, x := range s.Sites {
		if x.Mean == nil {
			return errors.New("compute times of a site without a law of their mean")
		}
		l := &siteLaws{mean: x.Mean, slots: map[slots.Place]*timeLaw{}, shares: map[slots.Place]float64{},
			roles: x.Roles, grid: x.Grid, noise: x.Noise, own: x.Own, shared: x.Shared}
		for _, k := range x.Slots {
			if k.Law != nil {
				l.slots[k.Place] = k.Law
			}
			if k.Share != nil {
				l.shares[k.Place] = *k.Share
			}
		}
		c.sites[event] = l
	}
	return nil
}

// MarshalJSON writes the points of a law.
func (l *timeLaw) MarshalJSON() ([]byte, error) {
	s := storedTime{Points: l.points}
	if p := l.parts; p != nil {
		s.Split = &storedSplit{p.instructions, p.stall, p.cpi, p.cycleNs}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *timeLaw) UnmarshalJSON(text []byte) error {
	var s storedTime
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	made := newTimeLaw(s.Points)
	if made == nil {
		return errors.New("a law of compute times without points")
	}
	*l = *made
	if p := s.Split; p != nil {
		if p.Instructions == nil || p.Stall == nil {
			return errors.New("compute times in two parts, of which one is missing")
		}
		l.parts = &splitLaw{instructions: p.Instructions, stall: p.Stall, cpi: p.CPI, cycleNs: p.CycleNs}
	}
	return nil
}
