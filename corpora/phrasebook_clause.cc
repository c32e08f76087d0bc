// Word order: the English clause and the German one with its verb second, first or last.
#include "corpora/phrasebook_clause.h"

namespace heddle::phrasebook {
namespace {

struct Finite {
  std::string finite, rest;
};

std::string do_form(const Nominal& s, bool is_past) {
  if (is_past) return "did";
  return s.be == "is" ? "does" : "do";
}

std::string have_form(const Nominal& s) { return s.be == "is" ? "has" : "have"; }

std::string denied(const std::string& finite) {
  if (finite == "am") return "am not";
  if (finite == "can") return "can't";
  if (finite == "will") return "won't";
  return finite + "n't";
}

std::string be_form(const Nominal& s, bool is_past) {
  if (!is_past) return s.be;
  return s.be == "are" ? "were" : "was";
}

// A verb that needs "do" to be asked or denied.
Finite with_do(const Clause& c, bool is_question, const std::array<std::string, 3>& forms) {
  const bool is_past = c.tense == Tense::past || (c.tense == Tense::modal && c.modal->is_past);
  if (c.is_negated || is_question) {
    const std::string finite = do_form(c.subject, is_past);
    return {c.is_negated ? denied(finite) : finite, forms[0]};
  }
  if (is_past) return {"", forms[2]};
  return {"", c.subject.be == "is" ? forms[1] : forms[0]};
}

Finite english_modal(const Clause& c, bool is_question) {
  const Modal& m = *c.modal;
  if (!m.is_lexical) return {c.is_negated ? m.en_not : m.en, m.en_rest + c.verb->en};
  Finite f = with_do(c, is_question, {m.en, m.en_s, m.en_s});
  f.rest += " " + c.verb->en;
  return f;
}

Finite english_verb(const Clause& c, bool is_question) {
  const Verb& v = *c.verb;
  std::string finite, rest;
  switch (c.tense) {
    case Tense::present:
    case Tense::past:
      if (c.verb != &be_verb()) return with_do(c, is_question, {v.en, v.en_s, v.en_past});
      finite = be_form(c.subject, c.tense == Tense::past);
      break;
    case Tense::progressive: finite = be_form(c.subject, false), rest = v.en_ing; break;
    case Tense::perfect: finite = have_form(c.subject), rest = v.en_participle; break;
    case Tense::future: finite = "will", rest = v.en; break;
    case Tense::modal: return english_modal(c, is_question);
  }
  return {c.is_negated ? denied(finite) : finite, rest};
}

bool has_preterite(const Clause& c) {
  return (c.tense == Tense::past || c.tense == Tense::perfect) &&
         (c.verb == &be_verb() || c.verb == &have_verb());
}

// The finite form and what stands at the clause's end in a main clause.
Finite german_verb(const Clause& c) {
  const Verb& v = *c.verb;
  const Person p = c.subject.person;
  if (has_preterite(c)) return {(c.verb == &be_verb() ? kWar : kHatte).of(p), ""};
  switch (c.tense) {
    case Tense::past:
    case Tense::perfect: return {(v.with_sein ? kSein : kHaben).of(p), v.participle};
    case Tense::future: return {kWerden.of(p), v.infinitive()};
    case Tense::modal: return {c.modal->de.of(p), v.infinitive()};
    default: break;
  }
  if (c.verb == &be_verb()) return {kSein.of(p), ""};
  if (c.verb == &have_verb()) return {kHaben.of(p), ""};
  return {present(v, p), v.prefix};
}

std::string reflexive(const Nominal& subject) {
  switch (subject.person) {
    case Person::ich: return "mich";
    case Person::du: return "dich";
    case Person::er: return "sich";
    case Person::wir: return subject.en == "we" ? "uns" : "sich";
  }
  return "sich";
}

std::string middle_field(const Clause& c) {
  const std::string nicht = c.is_negated && !c.has_kein ? "nicht" : "";
  const std::string sich = c.verb->is_reflexive ? reflexive(c.subject) : "";
  return joined({sich, c.de_pronoun, c.de_time, c.de_object, nicht, c.de_late});
}

std::string english_tail(const Clause& c) { return joined({c.en_object, c.en_place, c.en_time}); }

// "gave back" + "it" -> "gave it back": a pronoun goes before the particle.
std::string with_tail(const Clause& c, const std::string& verb) {
  static const std::vector<std::string> particles = {" up",   " on",    " off", " out",
                                                     " back", " along", " away"};
  for (const std::string& particle : particles) {
    if (c.has_pronoun && verb.ends_with(particle)) {
      const std::string head = verb.substr(0, verb.size() - particle.size());
      return joined({head, c.en_object, particle.substr(1), c.en_place, c.en_time});
    }
  }
  return joined({verb, english_tail(c)});
}

}  // namespace

uint64_t Dice::next() {
  state_ += 0x9e3779b97f4a7c15ull;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (word.empty()) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

std::string capitalised(std::string text) {
  if (text.empty()) return text;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  } else if (lead == 0xC3 && text.size() > 1 && static_cast<unsigned char>(text[1]) >= 0xA0) {
    text[1] = static_cast<char>(static_cast<unsigned char>(text[1]) - 0x20);  // ä -> Ä in UTF-8
  }
  return text;
}

std::string english_statement(const Clause& c) {
  const Finite v = english_verb(c, false);
  return joined({c.subject.en, v.finite, c.en_adverb, with_tail(c, v.rest)});
}

std::string english_question(const Clause& c) {
  const Finite v = english_verb(c, true);
  return joined({v.finite, c.subject.en, c.en_adverb, with_tail(c, v.rest)});
}

std::string english_infinitive(const Clause& c) { return with_tail(c, c.verb->en); }

std::string german_statement(const Clause& c) {
  const Finite v = german_verb(c);
  return joined({c.subject.in(Case::nominative), v.finite, middle_field(c), v.rest});
}

std::string german_question(const Clause& c) {
  const Finite v = german_verb(c);
  return joined({v.finite, c.subject.in(Case::nominative), middle_field(c), v.rest});
}

std::string german_verb_last(const Clause& c) {
  const Finite v = german_verb(c);
  const bool is_simple = c.tense == Tense::present || c.tense == Tense::progressive;
  const std::string verbs = is_simple ? v.rest + v.finite : joined({v.rest, v.finite});
  return joined({c.subject.in(Case::nominative), middle_field(c), verbs});
}

std::string german_infinitive(const Clause& c, bool with_zu) {
  return joined({middle_field(c), with_zu ? zu_infinitive(*c.verb) : c.verb->infinitive()});
}

std::string german_imperative(const Clause& c, bool is_polite) {
  const std::string verb = is_polite ? c.verb->stem_infinitive + " Sie" : c.verb->imperative;
  const std::string sich = c.verb->is_reflexive ? reflexive(c.subject) : "";
  return joined(
      {verb, sich, c.de_pronoun, "bitte", c.de_time, c.de_object, c.de_late, c.verb->prefix});
}

}  // namespace heddle::phrasebook
