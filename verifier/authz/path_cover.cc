// SPDX-License-Identifier: Apache-2.0
// Inclusion of path patterns: each becomes a small automaton over the resource with one '/' put after each segment,
// and the child's states are walked beside the set of states that the parents can be in.
#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <utility>

#include "verifier/authz/pattern.h"

namespace assay::authz {

// States are numbered in one space for all patterns added, so that a union is just several starts.
class PathAutomaton {
 public:
  using Set = std::vector<bool>;

  void Add(const Pattern& pattern) {
    int at = NewState();
    starts_.push_back(at);
    for (const Pattern::Segment& segment : pattern.segments_) at = AddSegment(segment, at);
    accepting_.push_back(at);
    for (const char c : pattern.text_)
      if (c != '*') symbols_.insert(c);
  }
  const std::set<char>& symbols() const { return symbols_; }

  Set Start() const {
    Set set(states_.size());
    for (const int state : starts_) Close(state, set);
    return set;
  }
  Set Step(const Set& from, char symbol) const {
    Set to(states_.size());
    for (std::size_t state = 0; state < from.size(); ++state) {
      if (!from[state]) continue;
      for (const Edge& edge : states_[state]) {
        if (edge.kind == Edge::kByte ? edge.byte == symbol : edge.kind == Edge::kNotSlash && symbol != '/')
          Close(edge.to, to);
      }
    }
    return to;
  }
  bool Accepts(const Set& set) const {
    return std::any_of(accepting_.begin(), accepting_.end(),
                       [&](int state) { return set[static_cast<std::size_t>(state)]; });
  }

 private:
  struct Edge {
    enum Kind { kByte, kNotSlash, kFree } kind;
    char byte;
    int to;
  };

  int NewState() {
    states_.emplace_back();
    return static_cast<int>(states_.size()) - 1;
  }
  int Link(int from, Edge::Kind kind, char byte) {
    const int to = NewState();
    states_[static_cast<std::size_t>(from)].push_back({kind, byte, to});
    return to;
  }
  void Loop(int state) { states_[static_cast<std::size_t>(state)].push_back({Edge::kNotSlash, 0, state}); }

  int AddSegment(const Pattern::Segment& segment, int at) {
    if (segment.kind == Pattern::Kind::kDeep) {
      const int between = Link(at, Edge::kFree, 0);
      const int within = Link(between, Edge::kFree, 0);
      Loop(within);
      states_[static_cast<std::size_t>(within)].push_back({Edge::kByte, '/', between});
      return Link(between, Edge::kFree, 0);
    }
    if (segment.kind == Pattern::Kind::kAny) {
      Loop(at = Link(at, Edge::kFree, 0));
    } else {
      for (const char c : segment.text) {
        if (c == '*') Loop(at = Link(at, Edge::kFree, 0));
        else at = Link(at, Edge::kByte, c);
      }
    }
    return Link(at, Edge::kByte, '/');
  }

  void Close(int state, Set& set) const {
    if (set[static_cast<std::size_t>(state)]) return;
    set[static_cast<std::size_t>(state)] = true;
    for (const Edge& edge : states_[static_cast<std::size_t>(state)])
      if (edge.kind == Edge::kFree) Close(edge.to, set);
  }

  std::vector<std::vector<Edge>> states_;
  std::vector<int> starts_;
  std::vector<int> accepting_;
  std::set<char> symbols_;
};

bool PathCovers(std::span<const Pattern* const> parents, const Pattern& child) {
  PathAutomaton inner;
  inner.Add(child);
  PathAutomaton outer;
  for (const Pattern* parent : parents)
    if (parent->language() == Language::kPath) outer.Add(*parent);
  std::set<char> symbols = inner.symbols();
  symbols.insert(outer.symbols().begin(), outer.symbols().end());
  symbols.insert('/');
  symbols.insert('\x01');  // stands for every byte that no pattern names: control characters are refused in them

  using State = std::pair<PathAutomaton::Set, PathAutomaton::Set>;
  const State start{inner.Start(), outer.Start()};
  std::set<State> seen{start};
  std::deque<State> todo{start};
  while (!todo.empty()) {
    const State state = std::move(todo.front());
    todo.pop_front();
    for (const char symbol : symbols) {
      State next{inner.Step(state.first, symbol), outer.Step(state.second, symbol)};
      if (std::find(next.first.begin(), next.first.end(), true) == next.first.end()) continue;
      if (inner.Accepts(next.first) && !outer.Accepts(next.second)) return false;
      if (seen.size() >= kCoverStates) return false;
      if (seen.insert(next).second) todo.push_back(std::move(next));
    }
  }
  return true;
}

}  // namespace assay::authz
