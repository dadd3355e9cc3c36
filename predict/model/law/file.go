package law

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
)

// storedLaw is a law as JSON.
type storedLaw struct {
	Constant *int64        `json:"constant,omitempty"`
	Root     *Law          `json:"root,omitempty"`
	Others   *Law          `json:"others,omitempty"`
	Sums     []Sum         `json:"sums,omitempty"`
	Group    *storedGroup  `json:"group,omitempty"`
	Places   []PlaceLaw    `json:"places,omitempty"`
	Keep     []int         `json:"keep,omitempty"`
	Single   *storedSingle `json:"single,omitempty"`
}

// storedGroup is a GroupLaw as JSON.
type storedGroup struct {
	Law      *regress.Law  `json:"law"`
	Grid     *pattern.Grid `json:"grid,omitempty"`
	Axes     []int         `json:"axes,omitempty"`
	Keep     []int         `json:"keep,omitempty"`
	Peer     bool          `json:"peer,omitempty"`
	Distance bool          `json:"distance,omitempty"`
	Turn     *Turn         `json:"turn,omitempty"`
	Exact    bool          `json:"exact,omitempty"`
	// Rivals are the laws with which it has to agree.
	Rivals []*storedGroup `json:"rivals,omitempty"`
}

// stored returns a group law as it is stored.
func (g *GroupLaw) stored() *storedGroup {
	s := &storedGroup{Law: g.Law, Grid: g.Grid, Axes: g.Axes, Keep: g.Keep, Peer: g.Peer, Distance: g.Distance,
		Exact: g.exact}
	if g.Turn.Sign != 0 {
		s.Turn = &g.Turn
	}
	for _, r := range g.Rivals {
		s.Rivals = append(s.Rivals, r.stored())
	}
	return s
}

// groupLaw returns the law that was stored.
func (s *storedGroup) groupLaw() (*GroupLaw, error) {
	if s == nil || s.Law == nil {
		return nil, errors.New("a group without a law")
	}
	g := &GroupLaw{Law: s.Law, Grid: s.Grid, Axes: s.Axes, Keep: s.Keep, Peer: s.Peer, Distance: s.Distance,
		exact: s.Exact}
	if s.Turn != nil {
		if g.Turn = *s.Turn; g.Turn.Sign != 1 && g.Turn.Sign != -1 || g.Turn.Component < 0 {
			return nil, fmt.Errorf("a group that turns by %d times component %d of the index", g.Turn.Sign, g.Turn.Component)
		}
		if g.Turn.Grid != nil && (g.Turn.Axis < 0 || g.Turn.Axis >= g.Turn.Grid.Axes) {
			return nil, fmt.Errorf("a group that turns by the coordinate on axis %d of a grid of %d axes", g.Turn.Axis,
				g.Turn.Grid.Axes)
		}
	}
	if g.Grid != nil && slices.ContainsFunc(g.Axes, func(a int) bool { return a >= g.Grid.Axes || a < -1 }) {
		return nil, errors.New("a group with an axis that its grid does not have")
	}
	for _, r := range s.Rivals {
		rival, err := r.groupLaw()
		if err != nil {
			return nil, err
		}
		g.Rivals = append(g.Rivals, rival)
	}
	return g, nil
}

// storedSingle is a SingleLaw as JSON.
type storedSingle struct {
	Value     int64            `json:"value"`
	Ranks     int32            `json:"ranks"`
	Relatives []storedRelative `json:"relatives,omitempty"`
}

// storedRelative is a relative as JSON.
type storedRelative struct {
	Law   *regress.Law  `json:"law"`
	Grid  *pattern.Grid `json:"grid"`
	Order []int         `json:"order"`
	Index []int32       `json:"index,omitempty"`
}

// MarshalJSON writes the law.
func (l *Law) MarshalJSON() ([]byte, error) {
	s := storedLaw{Constant: l.Constant, Root: l.Root, Others: l.Others, Sums: l.Sums, Places: l.Places, Keep: l.Keep}
	if g := l.Group; g != nil {
		s.Group = g.stored()
	}
	if x := l.Single; x != nil {
		s.Single = &storedSingle{Value: x.Value, Ranks: x.Ranks}
		for _, r := range x.Relatives {
			s.Single.Relatives = append(s.Single.Relatives, storedRelative{r.law, r.grid, r.order, r.index})
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Law) UnmarshalJSON(text []byte) error {
	var s storedLaw
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if (s.Root == nil) != (s.Others == nil) {
		return errors.New("a law of roots without one of the other ranks, or the other way round")
	}
	*l = Law{Constant: s.Constant, Root: s.Root, Others: s.Others, Sums: s.Sums, Places: s.Places, Keep: s.Keep}
	if s.Group != nil {
		g, err := s.Group.groupLaw()
		if err != nil {
			return err
		}
		l.Group = g
	}
	if x := s.Single; x != nil {
		l.Single = &SingleLaw{Value: x.Value, Ranks: x.Ranks}
		for _, r := range x.Relatives {
			if r.Law == nil || r.Grid == nil {
				return errors.New("a relative without a law or a grid")
			}
			l.Single.Relatives = append(l.Single.Relatives, relative{r.Law, r.Grid, r.Order, r.Index})
		}
	}
	return nil
}
