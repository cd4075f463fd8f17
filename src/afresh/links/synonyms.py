"""Words that public sites use for one thing, in the languages that are met most.

A subject ends with a semicolon and is short on purpose: a word belongs here only if a link with it is nearly
always about the subject, so `plan` or `report` alone do not.
"""

from functools import cache

from afresh.links.inflections import wanted
from afresh.links.words import plain_words, spellings

_SUBJECTS = """
budget, spending, expenditure, expenses, fiscal, appropriation, financial report, financial plan, financial
  statement, haushalt, finanzplan, presupuesto, gastos, dépenses, bilancio, orçamento, begroting;
contact, directory, phone, telephone, email, e mail, hotline, reach us, write to us, get in touch, call us,
  kontakt, ansprechpartner, coordonnées, contacter, contacto, contactar, contatti;
minutes, proceedings, protokoll, niederschrift, procès verbal, compte rendu, acta, verbale, notulen;
agenda, meeting packet, order of business, tagesordnung, ordre du jour, orden del día, ordine del giorno;
permit, license, licence, permission, authorization, genehmigung, baugenehmigung, bauantrag, bauantraege,
  erlaubnis, permis, autorisation, licencia, permiso, autorización, autorizzazione, vergunning;
job, career, employment, employer, vacancy, hiring, recruitment, recruiting, internship, apprenticeship,
  open position, job opening, current openings, open roles, work with us, work for us, work here, join our
  team, stelle, stellenangebot, karriere, ausbildung, arbeitsplatz, praktikum, emploi, recrutement, recrute,
  carrière, empleo, trabajo, vacante, lavoro, vacature, emprego;
election, vote, voting, voter, ballot, polling, candidate, referendum, wahl, abstimmung, stimmzettel,
  élection, scrutin, électeur, elección, votación, elezione, verkiezing, eleição;
tax, taxation, levy, taxpayer, property assessment, assessor, steuer, abgabe, impôt, fiscalité, impuesto,
  tributo, imposta, tassa, belasting, imposto;
library, librarian, ebooks, e books, book lending, borrow books, special collections, bibliothek, bücherei,
  bibliothèque, médiathèque, biblioteca, bibliotheek;
emergency, disaster, evacuation, crisis, urgent, trauma, ambulance, rescue, first aid, notfall, notruf,
  katastrophe, rettungsdienst, urgence, secours, emergencia, urgencias, emergenza, spoed;
press release, news release, media release, newsroom, press room, press office, pressemitteilung, communiqué
  de presse, nota de prensa, comunicato stampa, persbericht;
zoning, land use, rezoning, land development, bebauungsplan, flächennutzungsplan, urbanisme, urbanismo,
  urbanistica, bestemmingsplan;
admission, apply, applicant, application, enrollment, enrolment, zulassung, bewerbung, immatrikulation,
  admisión, ammissione;
tuition, fees, cost of attendance, studiengebühr, frais de scolarité, matrícula, tasse universitarie;
scholarship, fellowship, grant, bursary, stipend, financial aid, stipendium, bourse, beca, borsa di studio;
faculty, professor, lecturer, instructor, academic staff, dozent, enseignant, profesorado, docenti;
research, laboratory, labs, forschung, recherche, investigación, ricerca, onderzoek;
housing, residence, dormitory, dorm, apartment, accommodation, tenant, wohnen, wohnung, wohnheim, logement,
  vivienda, alloggio;
calendar, dates, deadlines, schedule, timetable, kalender, termine, calendrier, calendario, agenda cultural;
transcript, academic record, studienzeugnis, relevé de notes, expediente académico;
annual report, year in review, jahresbericht, geschäftsbericht, rapport annuel, memoria anual, informe
  anual, relazione annuale;
appointment, booking, schedule a visit, book a visit, terminvereinbarung, rendez vous, cita previa,
  appuntamento, afspraak;
doctor, physician, surgeon, specialist, provider, clinician, dr, arzt, ärzte, médecin, médico, medico;
billing, bill, invoice, payment, price list, pricing, charges, rechnung, facture, facturation, factura,
  fattura;
visitor, visiting, visit us, guest, besucher, visiteur, visitante;
donation, donor, donate, giving, ways to give, charity, fundraising, philanthropy, spende, faire un don,
  donación, donativo, donazione;
medical record, health record, patient record, medical chart, patientenakte, krankenakte, dossier médical,
  historia clínica;
pharmacy, pharmacist, prescription, medication, drugstore, apotheke, pharmacie, farmacia, apotheek;
maternity, pregnancy, birth, childbirth, obstetrics, newborn, midwife, prenatal, geburt, entbindung,
  maternité, maternidad, maternità;
court, judge, jury, docket, judicial, tribunal, gericht, juzgado, rechtbank;
sheriff, deputy, jail, inmate;
marriage, wedding, getting married, trauung, hochzeit, heirat, mariage, matrimonio, huwelijk;
recycling, recyclables, landfill, compost, waste, garbage, trash, rubbish, refuse collection, abfall, müll,
  müllabfuhr, entsorgung, déchets, ordures, poubelle, residuos, basura, reciclaje, rifiuti, afval;
health, clinic, vaccination, immunization, vaccine, epidemiology, restaurant inspection, gesundheit, santé,
  salud, salute;
public notice, legal notice, public announcement, bekanntmachung, avis public, aviso público, edicto;
park, playground, trail, recreation, spielplatz, parque, parco;
parking, car park, parkplatz, parken, stationnement, aparcamiento, parcheggio;
school, education, classroom, pupil, schule, bildung, école, escuela, scuola;
transit, bus, train, railway, public transport, nahverkehr, transports en commun, transporte público;
water, sewer, drinking water, wasser, eau, agua, acqua;
police, crime, polizei, policía, polizia;
fire, firefighter, fire department, feuerwehr, pompiers, bomberos;
event, festival, concert, veranstaltung, événement, evento;
news, newsletter, announcement, press, nachrichten, aktuelles, actualités, noticias, notizie;
procurement, tender, bid, request for proposals, rfp, purchasing, ausschreibung, vergabe, marché public,
  appel d offres, licitación, contratación, gara d appalto;
ordinance, bylaw, regulation, municipal code, legislation, satzung, verordnung, arrêté, règlement,
  ordenanza, reglamento;
funding, subsidy, grant program, förderung, subvention, subvención, ayudas;
complaint, grievance, ombudsman, beschwerde, réclamation, queja, reclamación;
statistics, data, indicators, dashboard, statistik, statistiques, estadísticas;
map, gis, stadtplan, carte, mapa, mappa;
museum, exhibition, gallery, ausstellung, musée, exposition, museo, exposición;
volunteer, volunteering, ehrenamt, bénévolat, voluntariado;
mayor, bürgermeister, maire, alcalde, alcaldía, sindaco, burgemeester;
council, councillor, councilmember, gemeinderat, stadtrat, conseil municipal, concejal, pleno;
staff, employee, personnel, team, mitarbeiter, personal;
insurance, coverage, medicare, medicaid, versicherung, assurance, seguro;
accessibility, disability, barrierefrei, accessibilité, accesibilidad;
climate, sustainability, emissions, klimaschutz, klima, climat, clima;
bridge, road, street, pavement, pothole, straße, voirie, calle;
patient, inpatient, outpatient, patienten;
student, undergraduate, graduate, studierende, étudiant, estudiante;
alumni, graduates, ehemalige, anciens élèves;
archive, archives, records office, archiv;
strategy, strategic plan, strategie, stratégie, estrategia;
privacy, data protection, datenschutz, confidentialité, privacidad;
survey, poll, questionnaire, consultation, umfrage, enquête, encuesta;
audit, auditor, inspector general, rechnungsprüfung
"""
Phrase = tuple[str, ...]
_LINES = [[tuple(plain_words(each)) for each in line.split(",")] for line in _SUBJECTS.split(";")]
MOST_RELATED = 60


@cache
def related(keyword: Phrase) -> tuple[Phrase, ...]:
    """What else a link may say that is about a keyword; nothing for one that no subject holds."""
    lines = [line for line in _LINES if any(_is_same(keyword, phrase) for phrase in line)]
    found = dict.fromkeys(phrase for line in lines for phrase in line if not _is_same(keyword, phrase))
    return tuple(found)[:MOST_RELATED]


def _is_same(keyword: Phrase, phrase: Phrase) -> bool:
    """Whether two phrases are one and the same but for spelling and number."""
    pairs = zip(keyword, phrase, strict=False)
    return len(keyword) == len(phrase) and all(wanted(one).forms & spellings(other) for one, other in pairs)
