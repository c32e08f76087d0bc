// The phrasebook's verbs by their principal parts. A line reads: English present, third person,
// past, participle, -ing; German infinitive (prefix|stem when it separates), du, er, perfect,
// imperative. A "*" before a line marks a verb of state: no "I am needing".
#include "heddle/base/error.h"
#include "heddle/corpora/phrasebook_lexicon.h"

namespace heddle::phrasebook {
namespace {

constexpr uint32_t kPeople = kFamily | kPerson;
constexpr uint32_t kEat = kFood | kFoodMass;
constexpr uint32_t kGoods = kThing | kClothes | kFurniture;

struct VerbEntry {
  const char* line;
  Frame frame = Frame::none;
  uint32_t objects = 0;
  const char *en_preposition = "", *de_preposition = "";
  Case preposition_case = Case::accusative;
};

const std::vector<VerbEntry>& accusative_entries() {
  constexpr Frame acc = Frame::accusative;
  static const std::vector<VerbEntry> entries = {
      {"buy/buys/bought/bought/buying/kaufen/kaufst/kauft/hat gekauft/kauf", acc,
       kGoods | kEat | kDrink | kVehicle},
      {"sell/sells/sold/sold/selling/verkaufen/verkaufst/verkauft/hat verkauft/verkauf", acc,
       kGoods | kEat | kVehicle | kBuilding},
      {"look for/looks for/looked for/looked for/looking for/suchen/suchst/sucht/hat gesucht/such",
       acc, kThing | kClothes | kPeople | kAnimal},
      {"*find/finds/found/found/finding/finden/findest/findet/hat gefunden/finde", acc,
       kThing | kClothes | kAnimal},
      {"*lose/loses/lost/lost/losing/verlieren/verlierst/verliert/hat verloren/verlier", acc,
       kThing | kClothes},
      {"*forget/forgets/forgot/forgotten/forgetting/vergessen/vergisst/vergisst/hat "
       "vergessen/vergiss",
       acc, kThing | kClothes},
      {"*need/needs/needed/needed/needing/brauchen/brauchst/braucht/hat gebraucht/", acc,
       kGoods | kEat | kDrink | kVehicle},
      {"*see/sees/saw/seen/seeing/sehen/siehst/sieht/hat gesehen/sieh", acc,
       kPeople | kAnimal | kVehicle | kBuilding | kThing},
      {"*know/knows/knew/known/knowing/kennen/kennst/kennt/hat gekannt/", acc, kPeople | kBuilding},
      {"*love/loves/loved/loved/loving/lieben/liebst/liebt/hat geliebt/lieb", acc,
       kFamily | kAnimal},
      {"read/reads/read/read/reading/lesen/liest/liest/hat gelesen/lies", acc, kText},
      {"write/writes/wrote/written/writing/schreiben/schreibst/schreibt/hat geschrieben/schreib",
       acc, kText},
      {"eat/eats/ate/eaten/eating/essen/isst/isst/hat gegessen/iss", acc, kEat},
      {"drink/drinks/drank/drunk/drinking/trinken/trinkst/trinkt/hat getrunken/trink", acc, kDrink},
      {"order/orders/ordered/ordered/ordering/bestellen/bestellst/bestellt/hat bestellt/bestell",
       acc, kEat | kDrink},
      {"pay for/pays for/paid for/paid for/paying for/bezahlen/bezahlst/bezahlt/hat bezahlt/bezahl",
       acc, kGoods | kEat | kDrink | kVehicle},
      {"take/takes/took/taken/taking/nehmen/nimmst/nimmt/hat genommen/nimm", acc,
       kThing | kClothes},
      {"wash/washes/washed/washed/washing/waschen/wäschst/wäscht/hat gewaschen/wasch", acc,
       kClothes | kVehicle},
      {"*wear/wears/wore/worn/wearing/tragen/trägst/trägt/hat getragen/trag", acc, kClothes},
      {"repair/repairs/repaired/repaired/repairing/reparieren/reparierst/repariert/hat "
       "repariert/reparier",
       acc, kVehicle | kFurniture | kOpens},
      {"clean/cleans/cleaned/cleaned/cleaning/putzen/putzt/putzt/hat geputzt/putz", acc,
       kOpens | kFurniture},
      {"visit/visits/visited/visited/visiting/besuchen/besuchst/besucht/hat besucht/besuch", acc,
       kPeople},
      {"meet/meets/met/met/meeting/treffen/triffst/trifft/hat getroffen/triff", acc, kPeople},
      {"*understand/understands/understood/understood/understanding/verstehen/verstehst/versteht/"
       "hat verstanden/",
       acc, kPeople | kText},
      {"greet/greets/greeted/greeted/greeting/begrüßen/begrüßt/begrüßt/hat begrüßt/begrüß", acc,
       kPeople},
      {"ask/asks/asked/asked/asking/fragen/fragst/fragt/hat gefragt/frag", acc, kPeople},
      {"feed/feeds/fed/fed/feeding/füttern/fütterst/füttert/hat gefüttert/fütter", acc, kAnimal},
      {"open/opens/opened/opened/opening/öffnen/öffnest/öffnet/hat geöffnet/öffne", acc, kOpens},
      {"close/closes/closed/closed/closing/schließen/schließt/schließt/hat geschlossen/schließ",
       acc, kOpens},
      {"paint/paints/painted/painted/painting/streichen/streichst/streicht/hat gestrichen/streich",
       acc, kFurniture},
      {"sign/signs/signed/signed/signing/unterschreiben/unterschreibst/unterschreibt/hat "
       "unterschrieben/unterschreib",
       acc, kText},
      {"hide/hides/hid/hidden/hiding/verstecken/versteckst/versteckt/hat versteckt/versteck", acc,
       kThing},
      // separable verbs
      {"pick up/picks up/picked up/picked up/picking up/ab|holen/holst/holt/hat abgeholt/hol", acc,
       kPeople | kText},
      {"put on/puts on/put on/put on/putting on/an|ziehen/ziehst/zieht/hat angezogen/zieh", acc,
       kClothes},
      {"take off/takes off/took off/taken off/taking off/aus|ziehen/ziehst/zieht/hat "
       "ausgezogen/zieh",
       acc, kClothes},
      {"try on/tries on/tried on/tried on/trying on/an|probieren/probierst/probiert/hat "
       "anprobiert/probier",
       acc, kClothes},
      {"bring along/brings along/brought along/brought along/bringing "
       "along/mit|bringen/bringst/bringt/hat mitgebracht/bring",
       acc, kThing | kEat | kDrink},
      {"call/calls/called/called/calling/an|rufen/rufst/ruft/hat angerufen/ruf", acc, kPeople},
      {"invite/invites/invited/invited/inviting/ein|laden/lädst/lädt/hat eingeladen/lad", acc,
       kPeople},
      {"pack/packs/packed/packed/packing/ein|packen/packst/packt/hat eingepackt/pack", acc,
       kThing | kClothes},
      {"throw away/throws away/threw away/thrown away/throwing away/weg|werfen/wirfst/wirft/hat "
       "weggeworfen/wirf",
       acc, kGoods},
      {"give back/gives back/gave back/given back/giving back/zurück|geben/gibst/gibt/hat "
       "zurückgegeben/gib",
       acc, kThing | kVehicle},
      {"read out/reads out/read out/read out/reading out/vor|lesen/liest/liest/hat vorgelesen/lies",
       acc, kText},
  };
  return entries;
}

const std::vector<VerbEntry>& other_object_entries() {
  constexpr Frame prep = Frame::preposition;
  constexpr Case acc = Case::accusative, dat = Case::dative;
  static const std::vector<VerbEntry> entries = {
      {"help/helps/helped/helped/helping/helfen/hilfst/hilft/hat geholfen/hilf", Frame::dative,
       kPeople},
      {"thank/thanks/thanked/thanked/thanking/danken/dankst/dankt/hat gedankt/dank", Frame::dative,
       kPeople},
      {"answer/answers/answered/answered/answering/antworten/antwortest/antwortet/hat "
       "geantwortet/antworte",
       Frame::dative, kPeople},
      {"*trust/trusts/trusted/trusted/trusting/vertrauen/vertraust/vertraut/hat vertraut/vertrau",
       Frame::dative, kPeople},
      {"congratulate/congratulates/congratulated/congratulated/congratulating/gratulieren/"
       "gratulierst/gratuliert/hat gratuliert/gratulier",
       Frame::dative, kPeople},
      {"listen/listens/listened/listened/listening/zu|hören/hörst/hört/hat zugehört/hör",
       Frame::dative, kPeople, "to"},
      {"wait/waits/waited/waited/waiting/warten/wartest/wartet/hat gewartet/warte", prep, kPeople,
       "for", "auf", acc},
      {"think/thinks/thought/thought/thinking/denken/denkst/denkt/hat gedacht/denk", prep,
       kFamily | kEvent, "of", "an", acc},
      {"talk/talks/talked/talked/talking/sprechen/sprichst/spricht/hat gesprochen/sprich", prep,
       kPeople, "to", "mit", dat},
      {"laugh/laughs/laughed/laughed/laughing/lachen/lachst/lacht/hat gelacht/lach", prep,
       kPeople | kAnimal, "at", "über", acc},
      {"dream/dreams/dreamed/dreamed/dreaming/träumen/träumst/träumt/hat geträumt/träum", prep,
       kEvent | kBuilding | kVehicle, "of", "von", dat},
      {"speak/speaks/spoke/spoken/speaking/reden/redest/redet/hat geredet/rede", prep,
       kPeople | kEvent, "about", "über", acc},
      {"play/plays/played/played/playing/spielen/spielst/spielt/hat gespielt/spiel", prep,
       kPerson | kAnimal, "with", "mit", dat},
      {"take part/takes part/took part/taken part/taking part/teil|nehmen/nimmst/nimmt/hat "
       "teilgenommen/nimm",
       prep, kEvent, "in", "an", dat},
      {"look forward/looks forward/looked forward/looked forward/looking forward/sich "
       "freuen/freust/freut/hat gefreut/freu",
       prep, kEvent, "to", "auf", acc},
      {"*remember/remembers/remembered/remembered/remembering/sich erinnern/erinnerst/erinnert/hat "
       "erinnert/erinner",
       prep, kPeople | kEvent | kBuilding, "", "an", acc},
      {"complain/complains/complained/complained/complaining/sich "
       "beschweren/beschwerst/beschwert/hat beschwert/beschwer",
       prep, kPeople | kOpens | kText, "about", "über", acc},
      {"take care/takes care/took care/taken care/taking care/auf|passen/passt/passt/hat "
       "aufgepasst/pass",
       prep, kAnimal | kPeople, "of", "auf", acc},
  };
  return entries;
}

const std::vector<VerbEntry>& giving_entries() {
  constexpr Frame acc = Frame::accusative;
  static const std::vector<VerbEntry> entries = {
      {"give/gives/gave/given/giving/geben/gibst/gibt/hat gegeben/gib", acc,
       kThing | kClothes | kEat},
      {"show/shows/showed/shown/showing/zeigen/zeigst/zeigt/hat gezeigt/zeig", acc,
       kThing | kClothes | kVehicle | kBuilding},
      {"send/sends/sent/sent/sending/schicken/schickst/schickt/hat geschickt/schick", acc, kThing},
      {"lend/lends/lent/lent/lending/leihen/leihst/leiht/hat geliehen/leih", acc,
       kThing | kVehicle},
      {"bring/brings/brought/brought/bringing/bringen/bringst/bringt/hat gebracht/bring", acc,
       kThing | kEat | kDrink},
      {"offer/offers/offered/offered/offering/an|bieten/bietest/bietet/hat angeboten/biete", acc,
       kEat | kDrink | kFurniture},
      {"pass/passes/passed/passed/passing/reichen/reichst/reicht/hat gereicht/reich", acc,
       kThing | kFood},
  };
  return entries;
}

const std::vector<VerbEntry>& plain_entries() {
  static const std::vector<VerbEntry> entries = {
      {"sleep/sleeps/slept/slept/sleeping/schlafen/schläfst/schläft/hat geschlafen/schlaf"},
      {"work/works/worked/worked/working/arbeiten/arbeitest/arbeitet/hat gearbeitet/arbeite"},
      {"cook/cooks/cooked/cooked/cooking/kochen/kochst/kocht/hat gekocht/koch"},
      {"dance/dances/danced/danced/dancing/tanzen/tanzt/tanzt/hat getanzt/tanz"},
      {"sing/sings/sang/sung/singing/singen/singst/singt/hat gesungen/sing"},
      {"swim/swims/swam/swum/swimming/schwimmen/schwimmst/schwimmt/ist geschwommen/schwimm"},
      {"smoke/smokes/smoked/smoked/smoking/rauchen/rauchst/raucht/hat geraucht/rauch"},
      {"learn/learns/learned/learned/learning/lernen/lernst/lernt/hat gelernt/lern"},
      {"stay/stays/stayed/stayed/staying/bleiben/bleibst/bleibt/ist geblieben/bleib"},
      {"get dressed/gets dressed/got dressed/got dressed/getting dressed/sich "
       "an|ziehen/ziehst/zieht/hat angezogen/zieh"},
      {"rest/rests/rested/rested/resting/sich aus|ruhen/ruhst/ruht/hat ausgeruht/ruh"},
      {"hurry/hurries/hurried/hurried/hurrying/sich beeilen/beeilst/beeilt/hat beeilt/beeil"},
      {"sit down/sits down/sat down/sat down/sitting down/sich setzen/setzt/setzt/hat "
       "gesetzt/setz"},
      {"get up/gets up/got up/got up/getting up/auf|stehen/stehst/steht/ist aufgestanden/steh"},
      {"fall asleep/falls asleep/fell asleep/fallen asleep/falling "
       "asleep/ein|schlafen/schläfst/schläft/ist eingeschlafen/schlaf"},
      {"arrive/arrives/arrived/arrived/arriving/an|kommen/kommst/kommt/ist angekommen/komm"},
      {"come back/comes back/came back/come back/coming back/zurück|kommen/kommst/kommt/ist "
       "zurückgekommen/komm"},
      {"come along/comes along/came along/come along/coming along/mit|kommen/kommst/kommt/ist "
       "mitgekommen/komm"},
      {"go out/goes out/went out/gone out/going out/aus|gehen/gehst/geht/ist ausgegangen/geh"},
      {"go shopping/goes shopping/went shopping/gone shopping/going "
       "shopping/ein|kaufen/kaufst/kauft/hat eingekauft/kauf"},
      {"watch television/watches television/watched television/watched television/watching "
       "television/fern|sehen/siehst/sieht/hat ferngesehen/sieh"},
      {"tidy up/tidies up/tidied up/tidied up/tidying up/auf|räumen/räumst/räumt/hat "
       "aufgeräumt/räum"},
      {"leave/leaves/left/left/leaving/los|fahren/fährst/fährt/ist losgefahren/fahr"},
      {"begin/begins/began/begun/beginning/an|fangen/fängst/fängt/hat angefangen/fang"},
      {"depart/departs/departed/departed/departing/ab|fahren/fährst/fährt/ist abgefahren/fahr"},
      {"get on/gets on/got on/got on/getting on/ein|steigen/steigst/steigt/ist eingestiegen/steig"},
      {"get off/gets off/got off/got off/getting off/aus|steigen/steigst/steigt/ist "
       "ausgestiegen/steig"},
  };
  return entries;
}

const std::vector<VerbEntry>& going_entries() {
  static const std::vector<VerbEntry> entries = {
      {"go/goes/went/gone/going/gehen/gehst/geht/ist gegangen/geh"},
      {"drive/drives/drove/driven/driving/fahren/fährst/fährt/ist gefahren/fahr"},
      {"travel/travels/travelled/travelled/travelling/reisen/reist/reist/ist gereist/reis"},
      {"run/runs/ran/run/running/rennen/rennst/rennt/ist gerannt/renn"},
      {"come/comes/came/come/coming/kommen/kommst/kommt/ist gekommen/komm"},
      {"return/returns/returned/returned/returning/zurück|gehen/gehst/geht/ist zurückgegangen/geh"},
  };
  return entries;
}

std::string first_person(const std::string& infinitive) {
  const bool ends_in_en = infinitive.ends_with("en");
  return infinitive.substr(0, infinitive.size() - (ends_in_en ? 2 : 1)) + "e";
}

Verb read_verb(const VerbEntry& entry) {
  const bool is_state = entry.line[0] == '*';
  const auto f = fields_of(entry.line + (is_state ? 1 : 0));
  check(f.size() == 10, ErrorKind::internal, "phrasebook: verb line '{}' needs 10 fields",
        entry.line);
  Verb v;
  v.en = f[0], v.en_s = f[1], v.en_past = f[2], v.en_participle = f[3], v.en_ing = f[4];
  const std::string sich = "sich ";
  v.is_reflexive = f[5].starts_with(sich);
  const std::string infinitive = v.is_reflexive ? f[5].substr(sich.size()) : f[5];
  const size_t bar = infinitive.find('|');
  v.prefix = bar == std::string::npos ? "" : infinitive.substr(0, bar);
  v.stem_infinitive = bar == std::string::npos ? infinitive : infinitive.substr(bar + 1);
  v.ich = first_person(v.stem_infinitive);
  v.du = f[6], v.er = f[7];
  v.with_sein = f[8].starts_with("ist");
  v.participle = f[8].substr(4);
  v.imperative = f[9];
  v.frame = entry.frame, v.objects = entry.objects;
  v.en_preposition = entry.en_preposition, v.de_preposition = entry.de_preposition;
  v.preposition_case = entry.preposition_case;
  v.is_state = is_state;
  return v;
}

std::vector<Verb> read_verbs(const std::vector<const std::vector<VerbEntry>*>& tables) {
  std::vector<Verb> verbs;
  for (const auto* table : tables) {
    for (const VerbEntry& entry : *table) verbs.push_back(read_verb(entry));
  }
  return verbs;
}

}  // namespace

const std::vector<Verb>& object_verbs() {
  static const auto list = read_verbs({&accusative_entries(), &other_object_entries()});
  return list;
}

const std::vector<Verb>& giving_verbs() {
  static const auto list = read_verbs({&giving_entries()});
  return list;
}

const std::vector<Verb>& plain_verbs() {
  static const auto list = read_verbs({&plain_entries()});
  return list;
}

const std::vector<Verb>& going_verbs() {
  static const auto list = read_verbs({&going_entries()});
  return list;
}

const Verb& verb(const std::string& en) {
  for (const auto* list : {&object_verbs(), &giving_verbs(), &plain_verbs(), &going_verbs()}) {
    for (const Verb& v : *list) {
      if (v.en == en) return v;
    }
  }
  fail(ErrorKind::internal, "phrasebook: no verb '{}' in the dictionary", en);
}

}  // namespace heddle::phrasebook
